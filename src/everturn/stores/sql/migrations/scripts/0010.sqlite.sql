-- Running upgrade 0009 -> 0010

UPDATE everturn_schema SET version_num='0010' WHERE everturn_schema.version_num = '0009';
