-- Mark that a session could not be summarised.  Lua, because a session that is gone must stay so.
--
-- ARGV: when it began ('' for any): another may have its id.

local began = redis.call('HGET', META, 'created')
if not began or (ARGV[1] ~= '' and tonumber(began) ~= tonumber(ARGV[1])) then return 0 end
redis.call('HSET', META, 'stalled', 1)
redis.call('HINCRBY', META, 'revision', 1)
return 1
