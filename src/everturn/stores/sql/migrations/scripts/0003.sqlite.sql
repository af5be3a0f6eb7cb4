-- Running upgrade 0002 -> 0003

CREATE TABLE event_keys (
    session TEXT NOT NULL,
    kind TEXT NOT NULL,
    "key" TEXT NOT NULL,
    seq BIGINT NOT NULL,
    PRIMARY KEY (session, kind, "key", seq)
);

CREATE INDEX turns_started ON turns (session, started);

INSERT INTO event_keys (session, kind, key, seq)
SELECT e.session, CASE json_extract(e.body, '$.event.type') WHEN 'CommandDropped' THEN 'command' WHEN 'MessageAdded' THEN 'command' WHEN 'FilesChanged' THEN 'files' WHEN 'FilesReverted' THEN 'files' WHEN 'RevertStarted' THEN 'files' WHEN 'GateOpened' THEN 'gate' WHEN 'CallFinished' THEN 'result' WHEN 'LateResultReceived' THEN 'late' WHEN 'SubagentStarted' THEN 'subagent' END, substr(coalesce(CASE json_extract(e.body, '$.event.type') WHEN 'CommandDropped' THEN json_extract(e.body, '$.event.command') WHEN 'MessageAdded' THEN json_extract(e.body, '$.event.command') WHEN 'FilesChanged' THEN json_extract(e.body, '$.event.root') WHEN 'FilesReverted' THEN json_extract(e.body, '$.event.root') WHEN 'RevertStarted' THEN json_extract(e.body, '$.event.root') WHEN 'GateOpened' THEN json_extract(e.body, '$.event.gate.id') WHEN 'CallFinished' THEN json_extract(e.body, '$.event.call') WHEN 'LateResultReceived' THEN json_extract(e.body, '$.event.call') WHEN 'SubagentStarted' THEN json_extract(e.body, '$.event.session') END, ''), 1, 200), e.seq
FROM (SELECT session, seq, CAST(body AS TEXT) AS body FROM events WHERE (CAST(body AS TEXT) LIKE '%"type":"CommandDropped"%' OR CAST(body AS TEXT) LIKE '%"type":"MessageAdded"%' OR CAST(body AS TEXT) LIKE '%"type":"FilesChanged"%' OR CAST(body AS TEXT) LIKE '%"type":"FilesReverted"%' OR CAST(body AS TEXT) LIKE '%"type":"RevertStarted"%' OR CAST(body AS TEXT) LIKE '%"type":"GateOpened"%' OR CAST(body AS TEXT) LIKE '%"type":"CallFinished"%' OR CAST(body AS TEXT) LIKE '%"type":"LateResultReceived"%' OR CAST(body AS TEXT) LIKE '%"type":"SubagentStarted"%')) e WHERE CASE json_extract(e.body, '$.event.type') WHEN 'MessageAdded' THEN coalesce(json_extract(e.body, '$.event.command'), '') != ''
        WHEN 'CallFinished' THEN coalesce(json_extract(e.body, '$.event.output.blob'), json_extract(e.body, '$.event.output.private'), '') != ''
        ELSE json_extract(e.body, '$.event.type') IN ('CommandDropped', 'MessageAdded', 'FilesChanged', 'FilesReverted', 'RevertStarted', 'GateOpened', 'CallFinished', 'LateResultReceived', 'SubagentStarted') END;

UPDATE everturn_schema SET version_num='0003' WHERE everturn_schema.version_num = '0002';
