-- The lists of sessions: of a tenant, and of each of its users.  Put in front of the scripts that
-- write them.  A list is two keys under one hash tag:
--   sessions  zset: session id, score its last activity
--   expiries  zset: session id, score when it expires, for sessions that do

local GRACE = 60 -- seconds by which the clocks of servers may differ

-- By the server's clock: a host whose own is ahead would take living sessions for dead.
local function touch(list, expiries, session, at, ttl)
  local now = tonumber(redis.call('TIME')[1])
  local known = redis.call('ZSCORE', list, session)
  if not known or tonumber(known) < tonumber(at) then redis.call('ZADD', list, at, session) end
  if ttl > 0 then
    redis.call('ZADD', expiries, now + ttl, session)
  else
    redis.call('ZREM', expiries, session)
  end
  -- Sessions expire by themselves, list entries do not: some of the dead go with every commit.
  local dead = redis.call('ZRANGEBYSCORE', expiries, '-inf', now - GRACE, 'LIMIT', 0, 10)
  if #dead > 0 then
    redis.call('ZREM', list, unpack(dead))
    redis.call('ZREM', expiries, unpack(dead))
  end
end
