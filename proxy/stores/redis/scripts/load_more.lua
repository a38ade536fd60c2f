-- More of a log that is read in pieces.  Lua, because what is read must belong together.
--
-- ARGV: the place in the log to read from, whether bodies are read too (0/1).
-- Returns { entries joined by commas, size of the log, stamp as in load.lua, seqs joined by commas, their
-- bodies }.

local stamp = log_stamp(unpack(redis.call('HMGET', META, 'created', 'changes', 'revised')))
local joined, seqs = entries(ranked(tonumber(ARGV[1]), PIECE))
if ARGV[2] == '0' then seqs = {} end
return { joined, redis.call('ZCARD', ACTIVE), stamp, table.concat(seqs, ','), fetch(LOG, seqs) }
