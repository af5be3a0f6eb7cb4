-- Running upgrade 0013 -> 0014

CREATE INDEX gates_expiring ON gates (session) WHERE is_open = 1 AND resolution IS NULL AND expires > 0;

UPDATE everturn_schema SET version_num='0014' WHERE everturn_schema.version_num = '0013';

UPDATE everturn_schema SET compatible_since='0013';
