-- Shared by the scripts of items.  Every script gets the keys of one owner's items, in one slot:
--   items        hash: place -> version SP created SP updated SP end SP value
--   item-places  zset: place, score 0                    sorted by namespace and key
--   item-ends    zset: place, score its end, for items that have one
-- Times are Unix seconds; an end is '-' where there is none.  Time comes in arguments.

local ITEMS, PLACES, ENDS = KEYS[1], KEYS[2], KEYS[3]
local GRACE = 60 -- seconds by which the clocks of hosts may differ
local MAX_SECONDS = 1e10 -- the longest time to live: Redis has a limit

-- Has it items that are in no list of places, because the server evicts keys?  None is in the list
-- that is not there, but where the items are lost: then there are more of these.
local function unlisted()
  return redis.call('HLEN', ITEMS) > redis.call('ZCARD', PLACES)
end

local function remove(place)
  redis.call('HDEL', ITEMS, place)
  redis.call('ZREM', PLACES, place)
  redis.call('ZREM', ENDS, place)
end

local function put(place, record, ending)
  redis.call('HSET', ITEMS, place, record)
  redis.call('ZADD', PLACES, 0, place)
  if ending == '-' then
    redis.call('ZREM', ENDS, place)
  else
    redis.call('ZADD', ENDS, ending, place)
  end
end

local function parts(record)
  local version, created, ending = string.match(record, '^(%d+) (%S+) %S+ (%S+) ')
  return tonumber(version), created, ending
end

local function is_over(ending, now)
  return ending ~= '-' and tonumber(ending) <= now
end

-- The record of an item that is there and not over, else nil.
local function alive(place, now)
  local record = redis.call('HGET', ITEMS, place)
  if not record then return nil end
  local _, _, ending = parts(record)
  return not is_over(ending, now) and record or nil
end

-- Remove some of what is over, and let the keys themselves end where all of their items do, or where
-- there is none.
local function tidy(now)
  local over = redis.call('ZRANGEBYSCORE', ENDS, '-inf', string.format('%.17g', now), 'LIMIT', 0, 10)
  for _, place in ipairs(over) do remove(place) end
  if redis.call('HLEN', ITEMS) == 0 then return redis.call('UNLINK', ITEMS, PLACES, ENDS) end
  local last = redis.call('ZREVRANGE', ENDS, 0, 0, 'WITHSCORES')
  local ends = #last > 0 and redis.call('ZCARD', ENDS) == redis.call('ZCARD', PLACES)
  for i = 1, 3 do
    if ends then
      local left = math.min(math.max(0, tonumber(last[2]) - now) + GRACE, MAX_SECONDS)
      redis.call('PEXPIRE', KEYS[i], string.format('%.0f', left * 1000))
    else
      redis.call('PERSIST', KEYS[i])
    end
  end
end
