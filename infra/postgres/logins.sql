-- Makes the logins of the services, each a member of its own role, or gives them the passwords of the environment:
--   INTAKE_POSTGRES_PASSWORD=… API_POSTGRES_PASSWORD=… WORKER_POSTGRES_PASSWORD=… psql "$DATABASE_URL" -f infra/postgres/logins.sql
-- Postgres' image runs it when it makes the database of infra/compose.yaml. It may be run again, before or after
-- `npm run migrate`, which gives the roles their rights. It needs psql 15 or later, as a user that may make roles.
\set ON_ERROR_STOP on
\getenv intake INTAKE_POSTGRES_PASSWORD
\getenv api API_POSTGRES_PASSWORD
\getenv worker WORKER_POSTGRES_PASSWORD

begin;
-- One that is missing or empty is an error here, not a login without a password.
select 1 / (least(length(:'intake'), length(:'api'), length(:'worker')) > 0)::int as has_passwords;

select format('create role %I nologin', role) from (values ('sluice_intake'), ('sluice_api'), ('sluice_worker')) as roles (role)
 where not exists (select from pg_roles where rolname = role) \gexec
select format('create role %I', role || '_login') from (values ('sluice_intake'), ('sluice_api'), ('sluice_worker')) as roles (role)
 where not exists (select from pg_roles where rolname = role || '_login') \gexec

alter role sluice_intake_login login inherit password :'intake';
alter role sluice_api_login login inherit password :'api';
alter role sluice_worker_login login inherit password :'worker';
grant sluice_intake to sluice_intake_login;
grant sluice_api to sluice_api_login;
grant sluice_worker to sluice_worker_login;
commit;
