-- Let go of a piece of work until later.  Lua, because another may hold it by now.
--
-- KEYS: due, pieces.  ARGV: piece, lease, when it is due, whether it has failed (0/1).

local asked, attempts, _, profile = held(KEYS[2])
if not asked then return 0 end
redis.call('ZADD', KEYS[1], ARGV[3], ARGV[1])
keep(KEYS[2], ARGV[1], asked, ARGV[4] == '1' and attempts + 1 or 0, '-', profile)
return 1
