-- Running upgrade 0008 -> 0011

ALTER TABLE sessions ADD COLUMN renamed BOOLEAN DEFAULT false NOT NULL;

ALTER TABLE sessions ADD COLUMN pinned BOOLEAN DEFAULT false NOT NULL;

ALTER TABLE sessions ADD COLUMN archived BOOLEAN DEFAULT false NOT NULL;

ALTER TABLE sessions ADD COLUMN labels TEXT DEFAULT '' NOT NULL;

ALTER TABLE sessions ADD COLUMN organized DOUBLE PRECISION DEFAULT '0' NOT NULL;

CREATE INDEX sessions_pinned ON sessions (tenant, moved) WHERE pinned;

CREATE INDEX sessions_organized ON sessions (tenant, organized) WHERE organized > 0;

UPDATE everturn_schema SET version_num='0011' WHERE everturn_schema.version_num = '0008';
