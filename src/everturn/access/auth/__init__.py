"""Authentication: turns credentials of every kind into a `Principal`, or refuses them.

- `authentication`: API keys, login links, cookies and OpenID Connect tokens
- `options`: the configuration of OpenID Connect
- `token_file`: the local operator's token, in a file
- `csrf`: CSRF tokens
- `passwords`: logins with passwords, and accepted invitations
- `oidc`: verifies tokens of an OpenID Connect provider
- `oidc_claims`: maps token claims to a user and a role
- `oidc_login`: the browser login with a provider
"""
