-- Running upgrade 0012 -> 0013

ALTER TABLE everturn_schema ADD COLUMN compatible_since VARCHAR(32);

UPDATE everturn_schema SET version_num='0013' WHERE everturn_schema.version_num = '0012';

UPDATE everturn_schema SET compatible_since='0013';
