-- The lists of sessions: of a tenant, and of each of its users.  Prepended to the scripts that write
-- them.  A list is two keys in one slot:
--   sessions  zset: session id, score its last activity
--   expiries  zset: session id, score when it expires, for sessions that do

local GRACE = 60 -- seconds by which the clocks of servers may differ

-- A list whose sessions all expire expires with the last one: it may never be written again.
local function let_end(list, expiries)
  local last = redis.call('ZREVRANGE', expiries, 0, 0, 'WITHSCORES')[2]
  if last and redis.call('ZCARD', expiries) == redis.call('ZCARD', list) then
    local at = string.format('%.0f', tonumber(last) + GRACE)
    redis.call('EXPIREAT', list, at)
    redis.call('EXPIREAT', expiries, at)
  else
    redis.call('PERSIST', list)
    redis.call('PERSIST', expiries)
  end
end

-- By the server's clock: a host whose own is ahead would take living sessions for dead.
local function touch(list, expiries, session, at, ttl)
  local now = tonumber(redis.call('TIME')[1])
  local known = redis.call('ZSCORE', list, session)
  if not known or tonumber(known) < tonumber(at) then redis.call('ZADD', list, at, session) end
  -- Alone in its list: what else expires was in one that is lost, and is no end of this one.
  if redis.call('ZCARD', list) == 1 then redis.call('DEL', expiries) end
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
  let_end(list, expiries)
end
