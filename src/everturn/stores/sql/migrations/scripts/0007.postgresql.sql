-- Running upgrade 0006 -> 0007

CREATE TABLE schedules (
    tenant TEXT NOT NULL,
    id TEXT NOT NULL,
    wake_at DOUBLE PRECISION,
    body BYTEA NOT NULL,
    PRIMARY KEY (tenant, id)
);

CREATE INDEX schedules_wake ON schedules (wake_at) WHERE wake_at IS NOT NULL;

CREATE TABLE webhooks (
    tenant TEXT NOT NULL,
    id TEXT NOT NULL,
    events TEXT NOT NULL,
    body BYTEA NOT NULL,
    PRIMARY KEY (tenant, id)
);

CREATE TABLE webhook_deliveries (
    tenant TEXT NOT NULL,
    webhook TEXT NOT NULL,
    session TEXT NOT NULL,
    seq BIGINT NOT NULL,
    type TEXT NOT NULL,
    at DOUBLE PRECISION NOT NULL,
    data TEXT NOT NULL,
    state TEXT NOT NULL,
    due DOUBLE PRECISION,
    tries INTEGER DEFAULT '0' NOT NULL,
    status INTEGER DEFAULT '0' NOT NULL,
    problem TEXT DEFAULT '' NOT NULL,
    updated DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (tenant, webhook, session, seq)
);

CREATE INDEX webhook_deliveries_due ON webhook_deliveries (due) WHERE due IS NOT NULL;

CREATE INDEX webhook_deliveries_state ON webhook_deliveries (tenant, state, at);

ALTER TABLE schedules ENABLE ROW LEVEL SECURITY;

CREATE POLICY wall ON schedules FOR SELECT USING (tenant = current_setting('everturn.tenant', true));

ALTER TABLE webhooks ENABLE ROW LEVEL SECURITY;

CREATE POLICY wall ON webhooks FOR SELECT USING (tenant = current_setting('everturn.tenant', true));

ALTER TABLE webhook_deliveries ENABLE ROW LEVEL SECURITY;

CREATE POLICY wall ON webhook_deliveries FOR SELECT USING (tenant = current_setting('everturn.tenant', true));

ALTER TABLE schedules SET (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02);

ALTER TABLE webhook_deliveries SET (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02);

UPDATE everturn_schema SET version_num='0007' WHERE everturn_schema.version_num = '0006';
