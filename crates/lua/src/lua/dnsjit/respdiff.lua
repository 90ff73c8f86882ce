-- dnsjit.output.respdiff: queries with two answers each, in the LMDB format of respdiff (2018-05-21).
--
-- LMDB is the system's library, loaded when it is first asked for. `queries` has the query, `answers`
-- both answers one after the other, each with the time it took (32 bits, 2^32 - 1 for none) and its
-- length (16 bits) before it, under the number of the query; `meta` names the two servers.
local _, inside = ...
require("dnsjit.core.objects")
local ffi = inside.ffi
local log = require("dnsjit.core.log").new("output.respdiff")

ffi.cdef([[
typedef struct MDB_env MDB_env;
typedef struct MDB_txn MDB_txn;
typedef unsigned int MDB_dbi;
typedef struct MDB_val { size_t mv_size; void *mv_data; } MDB_val;
int mdb_env_create(MDB_env **env);
int mdb_env_set_mapsize(MDB_env *env, size_t size);
int mdb_env_set_maxdbs(MDB_env *env, MDB_dbi count);
int mdb_env_open(MDB_env *env, const char *path, unsigned int flags, unsigned int mode);
void mdb_env_close(MDB_env *env);
int mdb_txn_begin(MDB_env *env, MDB_txn *parent, unsigned int flags, MDB_txn **txn);
int mdb_txn_commit(MDB_txn *txn);
int mdb_dbi_open(MDB_txn *txn, const char *name, unsigned int flags, MDB_dbi *dbi);
int mdb_put(MDB_txn *txn, MDB_dbi dbi, MDB_val *key, MDB_val *value, unsigned int flags);
char *mdb_strerror(int problem);
int mkdir(const char *path, unsigned int mode);
]])
local CREATE, ROOM = 0x40000, 10 * 1024 * 1024

local function library()
    for _, path in ipairs({ "liblmdb.so.0", "lmdb" }) do
        local ok, found = pcall(ffi.load, path)
        if ok then return found end
    end
    log:fatal("the library LMDB (liblmdb.so.0) is not installed")
end

local Respdiff = {}
Respdiff.__index = Respdiff

local function check(self, rc, doing)
    if rc ~= 0 then log:fatal("%s: %s", doing, ffi.string(self.lmdb.mdb_strerror(rc))) end
end

local function new(path, origname, recvname, mapsize)
    local self = setmetatable({
        lmdb = library(), number = 0, id = ffi.new("uint32_t[1]"), names = { origname, recvname },
        dbi = {}, head = ffi.new("uint32_t[1]"), size = ffi.new("uint16_t[1]"),
    }, Respdiff)
    self.obj = self
    ffi.C.mkdir(path, 0x1fd)
    local env, txn = ffi.new("MDB_env *[1]"), ffi.new("MDB_txn *[1]")
    check(self, self.lmdb.mdb_env_create(env), "environment")
    self.env = env[0]
    check(self, self.lmdb.mdb_env_set_mapsize(self.env, mapsize or ROOM), "size of the map")
    check(self, self.lmdb.mdb_env_set_maxdbs(self.env, 3), "number of databases")
    check(self, self.lmdb.mdb_env_open(self.env, path, 0, 0x1b4), path)
    check(self, self.lmdb.mdb_txn_begin(self.env, nil, 0, txn), "transaction")
    self.txn = txn[0]
    for _, what in ipairs({ "queries", "answers", "meta" }) do
        local dbi = ffi.new("MDB_dbi[1]")
        check(self, self.lmdb.mdb_dbi_open(self.txn, what, CREATE, dbi), what)
        self.dbi[what] = dbi[0]
    end
    return self
end

local function put(self, what, key, value)
    local k, v = ffi.new("MDB_val"), ffi.new("MDB_val")
    k.mv_size, k.mv_data = #key, ffi.cast("void *", key)
    v.mv_size, v.mv_data = #value, ffi.cast("void *", value)
    check(self, self.lmdb.mdb_put(self.txn, self.dbi[what], k, v, 0), what)
end

local function number(self, value)
    self.head[0] = value
    return ffi.string(self.head, 4)
end

function Respdiff:log() return log end

local function answer(self, payload, took)
    if not payload then
        self.size[0] = 0
        return number(self, 0xffffffff) .. ffi.string(self.size, 2)
    end
    self.size[0] = payload.len
    return number(self, took) .. ffi.string(self.size, 2)
        .. ffi.string(payload.payload, payload.len)
end

-- Takes a payload of the query, before it that of the answer it had, and before that the one it got,
-- if it got one. What the answer took counts from when the query before this one was handed in.
function Respdiff:receive()
    return function(this, obj)
        local chain, at = {}, ffi.cast("core_object_t *", obj)
        while at ~= nil and #chain < 3 do
            if at.obj_type ~= 40 then log:fatal("a payload is wanted in a chain of payloads") end
            chain[#chain + 1] = inside.object_cast(at)
            at = ffi.cast("core_object_t *", at.obj_prev)
        end
        if #chain < 2 then log:fatal("a query and an answer to it are wanted") end
        local time = this.time or ffi.new("gannet_time_t")
        ffi.C.clock_gettime(1, time)
        local now = tonumber(time.sec) * 1000 + tonumber(time.nsec) / 1e6
        local took = math.max(math.floor(now - (this.before or now)), 0)
        this.time, this.before = time, now
        local key = number(this, this.number)
        put(this, "queries", key, ffi.string(chain[1].payload, chain[1].len))
        put(this, "answers", key, answer(this, chain[2], 0) .. answer(this, chain[3], took))
        this.number = this.number + 1
    end, self
end

function Respdiff:commit(start_time, end_time)
    put(self, "meta", "version", "2018-05-21")
    put(self, "meta", "servers", number(self, 2))
    put(self, "meta", "name0", self.names[1])
    put(self, "meta", "name1", self.names[2])
    put(self, "meta", "start_time", number(self, start_time))
    put(self, "meta", "end_time", number(self, end_time))
    check(self, self.lmdb.mdb_txn_commit(self.txn), "commit")
    -- Here, and not when it is collected: then the library may be gone before.
    self.lmdb.mdb_env_close(self.env)
end

return { new = new }
