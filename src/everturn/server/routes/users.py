"""User administration routes: removal, budgets, invitations, usage by user, audit searches and quarantined sessions."""

from __future__ import annotations

from typing import Final

from everturn import api
from everturn.access.administration.quarantine import QuarantineAccess
from everturn.access.administration.users import UserAccess
from everturn.server.route import Param, Route
from everturn.server.routes.api import LIMIT, TIME, route_for

NAME: Final = {"type": "string", "maxLength": 1000}
NUMBER: Final = {"type": "integer", "minimum": 0, "maximum": 2**62}


ROUTES: Final[list[Route]] = [
    route_for(
        "DELETE",
        "/api/users/{user}",
        UserAccess.remove,
        "Remove a user: their keys and logins end. Their conversations stay, and the id is not given to anybody else.",
        lambda a: a.access.users.remove(a.ids["user"]),
        name="remove_user",
        status=204,
    ),
    route_for(
        "PUT",
        "/api/users/{user}/budget",
        UserAccess.set_budget,
        "Limit what a user may use in a period.",
        lambda a: a.access.users.set_budget(a.ids["user"], a.body),
        name="set_user_budget",
        body=api.PutUserBudget,
        status=204,
    ),
    route_for(
        "POST",
        "/api/users/{user}/password-reset",
        UserAccess.reset_password,
        "Create a link by which a user sets a new password, once. Only this response contains its secret.",
        lambda a: a.access.users.reset_password(a.ids["user"]),
        answer=api.NewInvitationView,
        status=201,
        is_secret=True,
    ),
    route_for(
        "GET",
        "/api/invitations",
        UserAccess.invitations,
        "List the invitations, newest first.",
        lambda a: a.access.users.invitations(),
        answer=api.InvitationList,
    ),
    route_for(
        "POST",
        "/api/invitations",
        UserAccess.invite,
        "Invite a person by a link that works once. Only this response contains its secret.",
        lambda a: a.access.users.invite(a.body),
        body=api.NewInvitation,
        answer=api.NewInvitationView,
        status=201,
        is_secret=True,
    ),
    route_for(
        "DELETE",
        "/api/invitations/{invitation}",
        UserAccess.revoke_invitation,
        "Revoke an invitation, or a link that resets a password.",
        lambda a: a.access.users.revoke_invitation(a.ids["invitation"]),
        status=204,
    ),
    route_for(
        "GET",
        "/api/usage/users",
        UserAccess.usage,
        "Get the usage by user, model and agent since a time.",
        lambda a: a.access.users.usage(**a.query),
        name="user_usage",
        answer=api.UserUsageView,
        query=(Param("since", TIME, "seconds since 1970; 0 is from the beginning"),),
    ),
    route_for(
        "GET",
        "/api/audit/search",
        UserAccess.search_audit,
        "Search the audit log, newest entries first.",
        lambda a: a.access.users.search_audit(**a.query),
        answer=api.AuditPage,
        query=(
            Param("by", NAME, "records of this user"),
            Param("did", NAME, "an action, or its first part: `session` finds `session.erase`"),
            Param("on", NAME, "records about this id"),
            Param("since", TIME, "seconds since 1970"),
            Param("until", TIME, "seconds since 1970; 0 is no end"),
            Param("before", NUMBER, "the number of the last record of the page before"),
            Param("limit", LIMIT),
        ),
    ),
    route_for(
        "GET",
        "/api/quarantine",
        QuarantineAccess.list,
        "List the quarantined sessions, without their text, and how long sessions are kept.",
        lambda a: a.access.quarantine.list(),
        name="quarantine",
        answer=api.QuarantineList,
    ),
    route_for(
        "POST",
        "/api/quarantine/{session}/retry",
        QuarantineAccess.retry,
        "Let a quarantined session be driven again, at once.",
        lambda a: a.access.quarantine.retry(a.ids["session"]),
        name="retry_session",
        status=204,
    ),
    route_for(
        "POST",
        "/api/quarantine/{session}/cancel",
        QuarantineAccess.cancel,
        "Cancel the open turns of a session, also of a private one.",
        lambda a: a.access.quarantine.cancel(a.ids["session"]),
        name="cancel_session",
        answer=api.CancelledSession,
    ),
]
