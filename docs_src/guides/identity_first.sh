set -eu
URL=${URL:-http://127.0.0.1:8000}
# --8<-- [start:make]
everturn users add anna --role member --name "Anna"
KEY=$(everturn keys add anna --role viewer --name "her dashboard")
anna="Authorization: Bearer $KEY"
curl -sS "$URL/api/me" -H "$anna" && echo
# --8<-- [end:make]

# --8<-- [start:refused]
curl -sS "$URL/api/sessions" -H "$anna" --json '{"text": "Hello"}' && echo
curl -sS "$URL/api/me" && echo
# --8<-- [end:refused]

# --8<-- [start:revoke]
everturn keys list | grep anna
everturn keys revoke "$(everturn keys list | grep anna | cut -d' ' -f1)"
sleep 2.5 # servers cache credentials for two seconds
curl -sS "$URL/api/me" -H "$anna" -o /dev/null -w '%{http_code}\n'
# --8<-- [end:revoke]

# --8<-- [start:audit]
owner="Authorization: Bearer $(cat ~/.local/share/everturn/operator.token)"
curl -sS "$URL/api/audit" -H "$owner" | grep -oE '"did":"(user|key)[^"]*"'
# --8<-- [end:audit]
