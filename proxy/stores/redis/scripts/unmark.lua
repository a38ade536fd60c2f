-- Lift a mark.  Lua, because one that is set meanwhile must stay.
--
-- KEYS: the mark.  ARGV: when that began which lifts it ('' for any mark).

if not forbids(redis.call('GET', KEYS[1]), ARGV[1]) then redis.call('DEL', KEYS[1]) end
return 1
