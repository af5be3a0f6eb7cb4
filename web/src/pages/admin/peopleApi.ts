/** API requests of the pages about users, invitations, keys, usage, audit and quarantined sessions. */
import type {
  AuditPage, CancelledSession, InvitationList, KeyList, NewInvitation, NewInvitationView, NewKey, NewKeyView, PutUser, PutUserBudget, QuarantineList, UserList,
  UserUsageView, UserView,
} from "@everturn/client";
import { client } from "../../app/app";

const id = encodeURIComponent;

export const fetchUsers = () => client.get<UserList>("/api/users");
export const putUser = (user: string, put: PutUser) => client.send<UserView>("PUT", `/api/users/${id(user)}`, put);
export const removeUser = (user: string) => client.send<void>("DELETE", `/api/users/${id(user)}`);
export const putBudget = (user: string, put: PutUserBudget) => client.send<void>("PUT", `/api/users/${id(user)}/budget`, put);
export const resetPassword = (user: string) => client.send<NewInvitationView>("POST", `/api/users/${id(user)}/password-reset`);
export const fetchInvitations = () => client.get<InvitationList>("/api/invitations");
export const invite = (made: NewInvitation) => client.send<NewInvitationView>("POST", "/api/invitations", made);
export const revokeInvitation = (invitation: string) => client.send<void>("DELETE", `/api/invitations/${id(invitation)}`);
export const fetchKeys = () => client.get<KeyList>("/api/keys");
export const createKey = (made: NewKey) => client.send<NewKeyView>("POST", "/api/keys", made);
export const revokeKey = (key: string) => client.send<void>("DELETE", `/api/keys/${id(key)}`);
export const fetchUserUsage = (since: number) => client.get<UserUsageView>("/api/usage/users", { since });
export const searchAudit = (query: Record<string, string | number | undefined>) => client.get<AuditPage>("/api/audit/search", query);
export const fetchQuarantine = () => client.get<QuarantineList>("/api/quarantine");
export const retrySession = (session: string) => client.send<void>("POST", `/api/quarantine/${id(session)}/retry`);
export const cancelSession = (session: string) => client.send<CancelledSession>("POST", `/api/quarantine/${id(session)}/cancel`);
export const eraseSession = (session: string) => client.send<void>("DELETE", `/api/sessions/${id(session)}`);

export const inviteLink = (secret: string) => `${location.origin}/#/invite/${secret}`;
