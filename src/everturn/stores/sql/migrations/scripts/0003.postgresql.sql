-- Running upgrade 0002 -> 0003

CREATE TABLE event_keys (
    session TEXT NOT NULL,
    kind TEXT NOT NULL,
    key TEXT NOT NULL,
    seq BIGINT NOT NULL,
    PRIMARY KEY (session, kind, key, seq)
);

CREATE INDEX turns_started ON turns (session, started);

INSERT INTO event_keys (session, kind, key, seq)
SELECT e.session, CASE e.body #>> '{event,type}' WHEN 'CommandDropped' THEN 'command' WHEN 'MessageAdded' THEN 'command' WHEN 'FilesChanged' THEN 'files' WHEN 'FilesReverted' THEN 'files' WHEN 'RevertStarted' THEN 'files' WHEN 'GateOpened' THEN 'gate' WHEN 'CallFinished' THEN 'result' WHEN 'LateResultReceived' THEN 'late' WHEN 'SubagentStarted' THEN 'subagent' END, substr(coalesce(CASE e.body #>> '{event,type}' WHEN 'CommandDropped' THEN e.body #>> '{event,command}' WHEN 'MessageAdded' THEN e.body #>> '{event,command}' WHEN 'FilesChanged' THEN e.body #>> '{event,root}' WHEN 'FilesReverted' THEN e.body #>> '{event,root}' WHEN 'RevertStarted' THEN e.body #>> '{event,root}' WHEN 'GateOpened' THEN e.body #>> '{event,gate,id}' WHEN 'CallFinished' THEN e.body #>> '{event,call}' WHEN 'LateResultReceived' THEN e.body #>> '{event,call}' WHEN 'SubagentStarted' THEN e.body #>> '{event,session}' END, ''), 1, 200), e.seq
FROM (SELECT session, seq, regexp_replace(convert_from(body, 'UTF8'), '(?<!\\)((\\\\)*)\\u0000', '\1', 'g')::json AS body FROM events WHERE convert_from(body, 'UTF8') ~ '"type":"(CommandDropped|MessageAdded|FilesChanged|FilesReverted|RevertStarted|GateOpened|CallFinished|LateResultReceived|SubagentStarted)"') e WHERE CASE e.body #>> '{event,type}' WHEN 'MessageAdded' THEN coalesce(e.body #>> '{event,command}', '') != ''
        WHEN 'CallFinished' THEN coalesce(e.body #>> '{event,output,blob}', e.body #>> '{event,output,private}', '') != ''
        ELSE e.body #>> '{event,type}' IN ('CommandDropped', 'MessageAdded', 'FilesChanged', 'FilesReverted', 'RevertStarted', 'GateOpened', 'CallFinished', 'LateResultReceived', 'SubagentStarted') END;

ALTER TABLE event_keys ENABLE ROW LEVEL SECURITY;

CREATE POLICY wall ON event_keys FOR SELECT USING ((SELECT s.tenant FROM sessions s WHERE s.id = event_keys.session) = current_setting('everturn.tenant', true));

UPDATE everturn_schema SET version_num='0003' WHERE everturn_schema.version_num = '0002';
