-- Running upgrade 0002 -> 0003

ALTER TABLE lookup ADD COLUMN tenant TEXT DEFAULT '' NOT NULL;

DROP INDEX lookup_words;

UPDATE lookup SET tenant = s.tenant, words = array_to_tsvector(ARRAY(
    SELECT left(md5(s.tenant), 8) || w.word FROM unnest(tsvector_to_array(lookup.words)) AS w (word)))
FROM sessions s WHERE s.id = lookup.session;

CREATE INDEX lookup_words ON lookup USING gin (words);

DROP POLICY wall ON lookup;

CREATE POLICY wall ON lookup FOR SELECT USING (tenant = current_setting('everturn.tenant', true));

CREATE OR REPLACE FUNCTION everturn_found(asked text, most bigint)
RETURNS TABLE (n bigint, session text, body bytea)
LANGUAGE sql STABLE SECURITY DEFINER AS $$
    WITH hits AS MATERIALIZED (
        SELECT l.n, l.session, l.message, l.tenant FROM lookup l WHERE l.words @@ asked::tsquery)
    SELECT h.n, h.session, f.body
    FROM (SELECT * FROM hits WHERE hits.tenant = current_setting('everturn.tenant', true) ORDER BY hits.n DESC) h
    CROSS JOIN LATERAL (
        SELECT m.body FROM messages m JOIN sessions s ON s.id = m.session
        WHERE m.session = h.session AND m.id = h.message AND NOT m.is_deleted AND NOT s.erased AND s.tenant = current_setting('everturn.tenant', true)
        OFFSET 0) f
    ORDER BY h.n DESC LIMIT most
$$;

DO $$ BEGIN
    EXECUTE 'ALTER FUNCTION everturn_found(text, bigint) SET search_path = '
        || quote_ident(current_schema()) || ', pg_temp';
END $$;

CREATE INDEX lookup_tenant ON lookup (tenant, n);

DROP INDEX gates_tenant;

CREATE INDEX gates_tenant ON gates (tenant, opened) WHERE is_open AND verdict IS NULL AND tenant != '';

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
    cost DOUBLE PRECISION DEFAULT '0' NOT NULL,
    priced BIGINT DEFAULT '0' NOT NULL,
    PRIMARY KEY (tenant, day, agent, part)
);

INSERT INTO usage_days (tenant, day, agent, part, steps, calls, input, output, cached, reasoning, written, cost, priced) SELECT tenant, floor(least(greatest(at, 0), 1e15) / 86400)::bigint, agent, 0, sum(steps), sum(calls), sum(input), sum(output), sum(cached), sum(reasoning), sum(written),
    coalesce(sum(cost), 0), count(cost) FROM usage GROUP BY 1, 2, 3;

CREATE FUNCTION everturn_count_usage() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    mine integer := mod(pg_backend_pid(), 1024);
    today bigint := floor(least(greatest(new.at, 0), 1e15) / 86400)::bigint;
BEGIN
    IF TG_OP = 'UPDATE' AND floor(least(greatest(old.at, 0), 1e15) / 86400)::bigint = today THEN
        IF (old.steps, old.calls, old.input, old.output, old.cached, old.reasoning, old.written, old.cost)
            IS NOT DISTINCT FROM
            (new.steps, new.calls, new.input, new.output, new.cached, new.reasoning, new.written, new.cost) THEN
            RETURN NULL;
        END IF;
        INSERT INTO usage_days AS d (tenant, day, agent, part, steps, calls, input, output, cached, reasoning, written, cost, priced) VALUES (new.tenant, today, new.agent, mine, new.steps - old.steps, new.calls - old.calls, new.input - old.input, new.output - old.output, new.cached - old.cached, new.reasoning - old.reasoning, new.written - old.written,
            coalesce(new.cost, 0) - coalesce(old.cost, 0), (new.cost IS NOT NULL)::int - (old.cost IS NOT NULL)::int)
        ON CONFLICT (tenant, day, agent, part) DO UPDATE SET steps = d.steps + excluded.steps, calls = d.calls + excluded.calls, input = d.input + excluded.input, output = d.output + excluded.output, cached = d.cached + excluded.cached, reasoning = d.reasoning + excluded.reasoning, written = d.written + excluded.written, cost = d.cost + excluded.cost, priced = d.priced + excluded.priced;
        RETURN NULL;
    END IF;
    IF TG_OP = 'UPDATE' THEN
        INSERT INTO usage_days AS d (tenant, day, agent, part, steps, calls, input, output, cached, reasoning, written, cost, priced) VALUES (old.tenant, floor(least(greatest(old.at, 0), 1e15) / 86400)::bigint, old.agent, mine, -old.steps, -old.calls, -old.input, -old.output, -old.cached, -old.reasoning, -old.written,
            -coalesce(old.cost, 0), -(old.cost IS NOT NULL)::int)
        ON CONFLICT (tenant, day, agent, part) DO UPDATE SET steps = d.steps + excluded.steps, calls = d.calls + excluded.calls, input = d.input + excluded.input, output = d.output + excluded.output, cached = d.cached + excluded.cached, reasoning = d.reasoning + excluded.reasoning, written = d.written + excluded.written, cost = d.cost + excluded.cost, priced = d.priced + excluded.priced;
    END IF;
    IF new.steps != 0 OR new.calls != 0 OR new.input != 0 OR new.output != 0 OR new.cached != 0 OR new.reasoning != 0 OR new.written != 0 OR new.cost IS NOT NULL THEN
        INSERT INTO usage_days AS d (tenant, day, agent, part, steps, calls, input, output, cached, reasoning, written, cost, priced) VALUES (new.tenant, today, new.agent, mine, new.steps, new.calls, new.input, new.output, new.cached, new.reasoning, new.written,
            coalesce(new.cost, 0), (new.cost IS NOT NULL)::int)
        ON CONFLICT (tenant, day, agent, part) DO UPDATE SET steps = d.steps + excluded.steps, calls = d.calls + excluded.calls, input = d.input + excluded.input, output = d.output + excluded.output, cached = d.cached + excluded.cached, reasoning = d.reasoning + excluded.reasoning, written = d.written + excluded.written, cost = d.cost + excluded.cost, priced = d.priced + excluded.priced;
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER usage_counted AFTER INSERT OR UPDATE ON usage FOR EACH ROW EXECUTE FUNCTION everturn_count_usage();

ALTER TABLE usage_days ENABLE ROW LEVEL SECURITY;

CREATE POLICY wall ON usage_days FOR SELECT USING (tenant = current_setting('everturn.tenant', true));

UPDATE everturn_version SET version_num='0003' WHERE everturn_version.version_num = '0002';
