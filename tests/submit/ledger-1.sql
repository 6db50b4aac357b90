pragma application_id = 1920298598;
pragma user_version = 1;
BEGIN TRANSACTION;
CREATE TABLE experiments (
    account text not null,
    region text not null,
    id text not null,
    stack text not null,
    name text not null,
    log_group text not null,
    document blob not null,
    created real not null,
    primary key (account, region, id)
) without rowid;
INSERT INTO "experiments" VALUES('123456789012','eu-west-1','aaaa','rl','ppo','/runfleet/rl',X'7B22636F6D6D616E64223A5B22707974686F6E222C2270706F2E7079225D2C227365656473223A5B312C322C332C345D2C22696D616765223A2269227D',1.0);
CREATE TABLE jobs (
    account text not null,
    region text not null,
    experiment text not null,
    number integer not null,
    chunk integer not null,
    name text not null,
    queue_name text not null,
    queue_arn text not null,
    definition text not null,
    runs text not null,
    size integer not null,
    request blob not null,
    state text not null,
    intended real not null,
    job_id text,
    counts blob,
    reason text,
    over integer not null default 0,
    started_ms integer,
    stopped_ms integer,
    seen real,
    primary key (account, region, experiment, number, chunk)
) without rowid;
INSERT INTO "jobs" VALUES('123456789012','eu-west-1','aaaa',0,0,'aaaa-0-0','q','arn:q','arn:d:1','0-1',2,X'7B7D','sent',5.0,'job-0',X'7B22646F6E65223A327D',NULL,1,NULL,NULL,9.0);
INSERT INTO "jobs" VALUES('123456789012','eu-west-1','aaaa',0,1,'aaaa-0-1','q','arn:q','arn:d:1','2-3',2,X'7B7D','intended',5.0,NULL,NULL,NULL,0,NULL,NULL,NULL);
COMMIT;
