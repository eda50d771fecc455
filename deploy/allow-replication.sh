#!/bin/sh
# Let the replica in, by password; run once by the image when the database is made.
set -eu
echo "host replication lookalike all scram-sha-256" >> "$PGDATA/pg_hba.conf"
