-- Hold a piece of work.  Lua, because of those who try at once only one may.
--
-- KEYS: due, pieces.  ARGV: piece, now, until, lease.
-- Returns { asked, attempts, profile }, or {} where it cannot be claimed.

local due = redis.call('ZSCORE', KEYS[1], ARGV[1])
local asked, attempts, lease, profile = piece_of(KEYS[2], ARGV[1])
if not due or not asked then return {} end
-- Its own claim, sent once more because the reply was lost, is no other's.
if tonumber(due) > tonumber(ARGV[2]) and lease ~= ARGV[4] then return {} end
redis.call('ZADD', KEYS[1], ARGV[3], ARGV[1])
keep(KEYS[2], ARGV[1], asked, attempts, ARGV[4], profile)
return { asked, attempts, profile }
