-- Mark what is erased.  Lua, because a full server refuses SET, but lets a script write anything once
-- it has removed something: who erases makes room there.
--
-- KEYS: the mark.  ARGV: until when, and how long it lives (ms).

redis.call('DEL', KEYS[1])
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
