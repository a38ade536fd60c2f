-- Let a session that was put back live as long as it says, now that it is in its lists.  Lua, because it
-- may be another by now, which says something else.

if redis.call('EXISTS', META) == 1 then expire(tonumber(redis.call('HGET', META, 'ttl') or 0)) end
return 1
