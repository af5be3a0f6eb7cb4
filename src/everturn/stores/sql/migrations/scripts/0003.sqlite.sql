-- Running upgrade 0002 -> 0003

ALTER TABLE lookup ADD COLUMN tenant TEXT DEFAULT '' NOT NULL;

DROP TRIGGER lookup_changed;

UPDATE lookup SET tenant = coalesce((SELECT s.tenant FROM sessions s WHERE s.id = lookup.session), '');

CREATE TRIGGER lookup_changed AFTER UPDATE OF words ON lookup BEGIN
    INSERT INTO lookup_words(lookup_words, rowid, words) VALUES ('delete', old.n, old.words);
    INSERT INTO lookup_words(rowid, words) VALUES (new.n, new.words);
END;

CREATE INDEX lookup_tenant ON lookup (tenant, n);

DROP INDEX gates_tenant;

CREATE INDEX gates_tenant ON gates (tenant, opened) WHERE is_open = 1 AND verdict IS NULL AND tenant != '';

CREATE INDEX sessions_stuck ON sessions (id) WHERE stuck != '';

CREATE TABLE usage_days (
    tenant TEXT NOT NULL,
    day BIGINT NOT NULL,
    agent TEXT NOT NULL,
    part INTEGER NOT NULL,
    steps BIGINT DEFAULT '0' NOT NULL,
    calls BIGINT DEFAULT '0' NOT NULL,
    input BIGINT DEFAULT '0' NOT NULL,
    output BIGINT DEFAULT '0' NOT NULL,
    cached BIGINT DEFAULT '0' NOT NULL,
    reasoning BIGINT DEFAULT '0' NOT NULL,
    written BIGINT DEFAULT '0' NOT NULL,
    cost DOUBLE DEFAULT '0' NOT NULL,
    priced BIGINT DEFAULT '0' NOT NULL,
    PRIMARY KEY (tenant, day, agent, part)
);

INSERT INTO usage_days (tenant, day, agent, part, steps, calls, input, output, cached, reasoning, written, cost, priced) SELECT tenant, CAST(usage.at / 86400 AS INTEGER), agent, 0, sum(steps), sum(calls), sum(input), sum(output), sum(cached), sum(reasoning), sum(written),
    coalesce(sum(cost), 0), count(cost) FROM usage GROUP BY 1, 2, 3;

CREATE TRIGGER usage_counted AFTER INSERT ON usage WHEN new.steps != 0 OR new.calls != 0 OR new.input != 0 OR new.output != 0 OR new.cached != 0 OR new.reasoning != 0 OR new.written != 0 OR new.cost IS NOT NULL BEGIN
        INSERT INTO usage_days (tenant, day, agent, part, steps, calls, input, output, cached, reasoning, written, cost, priced) VALUES (new.tenant, CAST(new.at / 86400 AS INTEGER), new.agent, 0, new.steps, new.calls, new.input, new.output, new.cached, new.reasoning, new.written, coalesce(new.cost, 0), (new.cost IS NOT NULL)) ON CONFLICT (tenant, day, agent, part) DO UPDATE SET steps = usage_days.steps + excluded.steps, calls = usage_days.calls + excluded.calls, input = usage_days.input + excluded.input, output = usage_days.output + excluded.output, cached = usage_days.cached + excluded.cached, reasoning = usage_days.reasoning + excluded.reasoning, written = usage_days.written + excluded.written, cost = usage_days.cost + excluded.cost, priced = usage_days.priced + excluded.priced;
    END;

CREATE TRIGGER usage_recounted AFTER UPDATE ON usage BEGIN
        INSERT INTO usage_days (tenant, day, agent, part, steps, calls, input, output, cached, reasoning, written, cost, priced) VALUES (old.tenant, CAST(old.at / 86400 AS INTEGER), old.agent, 0, -old.steps, -old.calls, -old.input, -old.output, -old.cached, -old.reasoning, -old.written, -coalesce(old.cost, 0), -(old.cost IS NOT NULL)) ON CONFLICT (tenant, day, agent, part) DO UPDATE SET steps = usage_days.steps + excluded.steps, calls = usage_days.calls + excluded.calls, input = usage_days.input + excluded.input, output = usage_days.output + excluded.output, cached = usage_days.cached + excluded.cached, reasoning = usage_days.reasoning + excluded.reasoning, written = usage_days.written + excluded.written, cost = usage_days.cost + excluded.cost, priced = usage_days.priced + excluded.priced;
        INSERT INTO usage_days (tenant, day, agent, part, steps, calls, input, output, cached, reasoning, written, cost, priced) VALUES (new.tenant, CAST(new.at / 86400 AS INTEGER), new.agent, 0, new.steps, new.calls, new.input, new.output, new.cached, new.reasoning, new.written, coalesce(new.cost, 0), (new.cost IS NOT NULL)) ON CONFLICT (tenant, day, agent, part) DO UPDATE SET steps = usage_days.steps + excluded.steps, calls = usage_days.calls + excluded.calls, input = usage_days.input + excluded.input, output = usage_days.output + excluded.output, cached = usage_days.cached + excluded.cached, reasoning = usage_days.reasoning + excluded.reasoning, written = usage_days.written + excluded.written, cost = usage_days.cost + excluded.cost, priced = usage_days.priced + excluded.priced;
    END;

UPDATE everturn_version SET version_num='0003' WHERE everturn_version.version_num = '0002';
