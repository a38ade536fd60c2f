-- Forget all versions of a summary.  Lua, because the one in force lies in two places.
--
-- Returns 1, or 0 where there were none.

local there = redis.call('UNLINK', SUMMARIES)
if redis.call('EXISTS', META) == 0 then return 0 end
redis.call('HDEL', META, 'summary', 'stalled')
redis.call('HINCRBY', META, 'revision', 1)
redis.call('HINCRBY', META, 'changes', there)
return there
