-- Run once, on the primary: psql -v password=SECRET -f plants.sql 'host=10.0.0.11,10.0.0.12,10.0.0.13 user=postgres target_session_attrs=read-write'
CREATE ROLE plants LOGIN PASSWORD :'password';
-- Shows which streaming standbys are synchronous; without it, every stream counts as synchronous.
GRANT pg_monitor TO plants;
CREATE DATABASE plants OWNER plants ENCODING 'UTF8' TEMPLATE template0;
