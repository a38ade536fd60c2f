-- A session as it is, to be put elsewhere.  Lua, because its keys must be of one moment.
--
-- Returns { stamp, time to live (ms, -1 for ever), owner, last activity, ttl, one payload a key (nil
-- for a key that is not there, so it comes last and in a list of its own) }, or {}.

local meta = redis.call('HMGET', META, 'revision', 'created', 'last', 'owner', 'active_at', 'ttl')
if not meta[1] then return {} end
local payloads = {}
for i = 1, SESSION_KEYS do payloads[i] = redis.call('DUMP', KEYS[i]) or '' end
return {
  stamp_of(meta), redis.call('PTTL', META), meta[4] or '',
  meta[5], meta[6], payloads,
}
