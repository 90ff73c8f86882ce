-- Questions that analysts ask, each ended by a semicolon. The test asks gannet about Parquet files, TSV logs, JSON logs
-- and the capture itself, and DuckDB about the Parquet files: all answers are equal.
-- A line '-- duckdb: …' before a question has the words of DuckDB where they differ.

SELECT count(*) AS n FROM conn;
SELECT count(*) AS n, count(service) AS named, count(DISTINCT id.orig_h) AS hosts FROM conn;
SELECT proto, count(*) AS n FROM conn GROUP BY proto ORDER BY n DESC, proto;
SELECT service, count(*) AS n, sum(orig_bytes) AS sent, sum(resp_bytes) AS received FROM conn GROUP BY service ORDER BY service;
SELECT conn_state, count(*) AS n FROM conn GROUP BY conn_state HAVING count(*) > 1 ORDER BY conn_state;
SELECT id.orig_h, id.resp_h, sum(orig_bytes + resp_bytes) AS bytes FROM conn GROUP BY id.orig_h, id.resp_h ORDER BY bytes DESC NULLS LAST, id.orig_h, id.resp_h LIMIT 10;
SELECT id.resp_p, proto, count(*) AS n FROM conn GROUP BY id.resp_p, proto ORDER BY n DESC, id.resp_p, proto LIMIT 10;
SELECT uid, ts, duration FROM conn WHERE duration IS NOT NULL ORDER BY duration DESC, uid LIMIT 5;
SELECT uid, id.orig_h FROM conn WHERE id.orig_h LIKE '%:%' ORDER BY uid;
SELECT min(ts) AS first, max(ts) AS last FROM conn;
SELECT date_trunc('second', ts) AS second, count(*) AS n FROM conn GROUP BY second ORDER BY second;
SELECT extract(hour FROM ts) AS hour, count(*) AS n FROM conn GROUP BY hour ORDER BY hour;
SELECT avg(duration) AS mean, min(duration) AS least, max(duration) AS most FROM conn;
SELECT stddev(duration) AS spread, var_pop(orig_pkts) AS of_packets FROM conn WHERE duration > 0;
SELECT median(duration) AS middle FROM conn WHERE duration > 0;
SELECT uid FROM conn WHERE id.resp_p IN (80, 443) AND orig_bytes > 100 ORDER BY uid;
SELECT count(*) AS n FROM conn WHERE orig_bytes BETWEEN 100 AND 10000;
SELECT count(*) AS n FROM conn WHERE service IS NULL OR conn_state = 'S0';
SELECT CASE WHEN resp_bytes > orig_bytes THEN 'down' WHEN resp_bytes < orig_bytes THEN 'up' ELSE 'even' END AS direction, count(*) AS n FROM conn GROUP BY direction ORDER BY direction;
SELECT coalesce(service, 'unknown') AS service_or_not, count(*) AS n FROM conn GROUP BY service_or_not ORDER BY service_or_not;
SELECT history, count(*) AS n FROM conn GROUP BY history ORDER BY n DESC, history LIMIT 8;
SELECT count(*) FILTER (WHERE proto = 'udp') AS udp, count(*) FILTER (WHERE proto = 'tcp') AS tcp FROM conn;
SELECT uid, row_number() OVER (PARTITION BY id.orig_h ORDER BY ts, uid) AS k FROM conn ORDER BY uid LIMIT 20;
SELECT uid, rank() OVER (ORDER BY orig_bytes DESC NULLS LAST) AS place FROM conn ORDER BY place, uid LIMIT 10;
SELECT uid, orig_bytes - lag(orig_bytes) OVER (ORDER BY ts, uid) AS more FROM conn ORDER BY ts, uid LIMIT 12;
SELECT id.orig_h, sum(count(*)) OVER (ORDER BY id.orig_h) AS so_far FROM conn GROUP BY id.orig_h ORDER BY id.orig_h;
WITH talkers AS (SELECT id.orig_h AS host, count(*) AS n FROM conn GROUP BY id.orig_h) SELECT host, n FROM talkers WHERE n > (SELECT avg(n) FROM talkers) ORDER BY n DESC, host;
SELECT id.orig_h AS host FROM conn UNION SELECT id.resp_h FROM conn ORDER BY host LIMIT 20;
SELECT id.orig_h AS host FROM conn EXCEPT SELECT id.resp_h FROM conn ORDER BY host;
SELECT id.orig_h AS host FROM conn INTERSECT SELECT id.orig_h FROM dns ORDER BY host;
SELECT query, count(*) AS n FROM dns GROUP BY query ORDER BY n DESC, query LIMIT 10;
SELECT qtype_name, rcode_name, count(*) AS n FROM dns GROUP BY qtype_name, rcode_name ORDER BY qtype_name, rcode_name;
SELECT query FROM dns WHERE rcode_name <> 'NOERROR' ORDER BY query;
SELECT avg(rtt) AS mean, max(rtt) AS most FROM dns;
SELECT length(query) AS letters, count(*) AS n FROM dns GROUP BY letters ORDER BY letters DESC;
SELECT DISTINCT upper(split_part(query, '.', 1)) AS label FROM dns ORDER BY label LIMIT 20;
SELECT AA, RD, RA, count(*) AS n FROM dns GROUP BY AA, RD, RA ORDER BY AA, RD, RA;
SELECT query, unnest(answers) AS answer FROM dns ORDER BY query, answer LIMIT 30;
SELECT count(*) AS n FROM dns WHERE answers IS NULL;
SELECT trans_id, query FROM dns WHERE Z = 0 ORDER BY trans_id, query LIMIT 5;
SELECT c.uid, c.service, d.query FROM conn c JOIN dns d ON c.uid = d.uid ORDER BY c.uid, d.query LIMIT 20;
SELECT c.uid, count(d.query) AS queries FROM conn c LEFT JOIN dns d ON c.uid = d.uid GROUP BY c.uid ORDER BY queries DESC, c.uid LIMIT 10;
SELECT uid FROM conn WHERE uid IN (SELECT uid FROM http) ORDER BY uid;
SELECT uid FROM conn c WHERE NOT EXISTS (SELECT 1 FROM dns d WHERE d.uid = c.uid) ORDER BY uid LIMIT 10;
SELECT method, host, count(*) AS n FROM http GROUP BY method, host ORDER BY method, host;
SELECT status_code, count(*) AS n FROM http GROUP BY status_code ORDER BY status_code;
SELECT host || uri AS url, response_body_len FROM http ORDER BY url, response_body_len;
SELECT lower(user_agent) AS agent, count(*) AS n FROM http GROUP BY agent ORDER BY agent;
SELECT f.mime_type, count(*) AS n, sum(f.seen_bytes) AS bytes FROM files f GROUP BY f.mime_type ORDER BY f.mime_type;
SELECT h.uri, f.mime_type FROM http h JOIN files f ON list_contains(h.resp_fuids, f.fuid) ORDER BY h.uri, f.mime_type;
SELECT version, cipher, count(*) AS n FROM ssl GROUP BY version, cipher ORDER BY version, cipher;
SELECT server_name, resumed, established FROM ssl ORDER BY server_name, resumed, established;
SELECT proto, service, count(*) AS n FROM conn GROUP BY ROLLUP (proto, service) ORDER BY proto NULLS LAST, service NULLS LAST, n;
SELECT string_agg(DISTINCT proto, ',' ORDER BY proto) AS protos FROM conn;
SELECT name, count(*) AS n FROM weird GROUP BY name ORDER BY name;
SELECT uid FROM conn ORDER BY uid LIMIT 5 OFFSET 5;
SELECT id.orig_p % 10 AS last_digit, count(*) AS n FROM conn GROUP BY last_digit ORDER BY last_digit;
SELECT local_orig, local_resp, count(*) AS n FROM conn GROUP BY local_orig, local_resp ORDER BY local_orig, local_resp;
-- duckdb: SELECT uid FROM conn WHERE regexp_full_match(split_part("id.orig_h", '.', 1), '192|10') ORDER BY uid
SELECT uid FROM conn WHERE cidr(id.orig_h, '192.0.0.0/8') OR cidr(id.orig_h, '10.0.0.0/8') ORDER BY uid;
-- duckdb: SELECT time_bucket(INTERVAL '10 seconds', ts, TIMESTAMPTZ '1970-01-01 00:00:00+00') AS slot, count(*) AS n FROM conn GROUP BY slot ORDER BY slot
SELECT hist(ts, '10s') AS slot, count(*) AS n FROM conn GROUP BY slot ORDER BY slot;
-- duckdb: SELECT query FROM dns WHERE query LIKE '%example.com' ORDER BY query
SELECT query FROM dns WHERE domain(query) = 'example.com' ORDER BY query;
