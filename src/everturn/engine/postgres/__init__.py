"""PostgreSQL engine: several processes drive the sessions of one database, without another server.

- `engine`: `PostgresEngine`, which takes due sessions and drives them
- `lease`: the row that shows that this worker is alive, and the take-over from those that are not
- `notifier`: tells other workers to look, merged
- `statements`: the SQL
"""

from everturn.engine.postgres.engine import PostgresEngine

__all__ = ["PostgresEngine"]
