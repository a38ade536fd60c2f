-- Mark that a session could not be summarised.  Lua, because a session that is gone must stay so.

if redis.call('EXISTS', META) == 0 then return 0 end
redis.call('HSET', META, 'stalled', 1)
redis.call('HINCRBY', META, 'revision', 1)
return 1
