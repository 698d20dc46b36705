"""Reads tables of `nenrin export parquet` by DuckDB and prints what it counts, as JSON.

judge_tables.py FOLDER
Run by the Python of the environment that `scripts/test` installs.
"""

import json
import sys

import duckdb

FOLDER = sys.argv[1]


def table(name):
    return f"read_parquet('{FOLDER}/{name}/*/*.parquet', hive_partitioning = true)"


def rows(query):
    return duckdb.sql(query).fetchall()


def one(query):
    return rows(query)[0][0]


print(json.dumps({
    "visits": one(f"SELECT count(*) FROM {table('visits')}"),
    "distinct_visits": one(f"SELECT count(DISTINCT visit) FROM {table('visits')}"),
    "received_bytes": int(one(f"SELECT sum(received_bytes) FROM {table('visits')}")),
    "outcomes": dict(rows(f"SELECT outcome, count(*) FROM {table('visits')} GROUP BY outcome")),
    "misplaced": one(f"SELECT count(*) FROM {table('visits')} WHERE strftime(visited, '%Y-%m') <> month::VARCHAR"),
    "versions": one(f"SELECT count(DISTINCT version) FROM {table('versions')}"),
    "version_rows": one(f"SELECT count(*) FROM {table('versions')}"),
    "version_bytes": dict(rows(f"SELECT url, sum(bytes)::BIGINT FROM {table('versions')} GROUP BY url")),
    "pages": one(f"SELECT count(*) FROM {table('pages')}"),
    "page_visits": int(one(f"SELECT sum(visits) FROM {table('pages')}")),
    "top_links": one(f"""SELECT count(*) FROM {table('links')} AS l JOIN {table('pages')} AS p USING (page)
        JOIN {table('pages')} AS q ON q.page = l.links_to WHERE p.url LIKE '%/'"""),
    "titles": [text for (text,) in rows(f"""SELECT text FROM {table('text')}
        WHERE kind = 'title' AND change = 'added' AND text LIKE 'Front%' ORDER BY visited, version""")],
    "titles_gone": one(f"""SELECT count(*) FROM {table('text')}
        WHERE kind = 'title' AND change = 'removed' AND text LIKE 'Front%'"""),
}))
