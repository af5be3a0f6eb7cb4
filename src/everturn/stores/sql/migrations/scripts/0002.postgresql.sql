-- Running upgrade 0001 -> 0002

ALTER TABLE sessions ADD COLUMN awaited_agent TEXT DEFAULT '' NOT NULL;

UPDATE everturn_schema SET version_num='0002' WHERE everturn_schema.version_num = '0001';
