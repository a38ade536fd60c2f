-- Make a version the summary in force.  Lua, because it may only follow the version that it was made
-- from, over messages that are what they were then, and not over what was erased since.
--
-- ARGV: the version (see summary_prelude.lua), the one that must be in force (0 for none), the count
-- of changes that it was made at ('' for any), most versions to keep, when the messages were read
-- ('' for not known), when the session began ('' for any), the id of the message at the seq that the
-- version has seen ('' for any).  The key behind the session's is its mark.
-- Returns 1, or 0 where it is not done.

-- Is the message at a seq another, or gone?  A server that has lost its newest writes gives their seqs
-- to others.
local function is_another(seq, id)
  local stored = redis.call('HGET', CARDS, padded(seq))
  return not stored or card_of(stored)[1] ~= id
end

local meta = redis.call('HMGET', META, 'next', 'summary', 'changes', 'created')
local in_force = string.match(meta[2] or '0', '^%d+')
if not meta[1] or in_force ~= ARGV[2] then return 0 end
if ARGV[3] ~= '' and (meta[3] or '0') ~= ARGV[3] then return 0 end
if ARGV[6] ~= '' and tonumber(meta[4]) ~= tonumber(ARGV[6]) then return 0 end
local seen = string.match(ARGV[1], '^%d+ %d+ %d+ (%d+)')
if ARGV[7] ~= '' and is_another(seen, ARGV[7]) then return 0 end

if forbids(redis.call('GET', KEYS[SESSION_KEYS + 1]), ARGV[5]) then return 0 end

local left = redis.call('PTTL', META)
redis.call('HSET', SUMMARIES, string.match(ARGV[1], '^%d+'), ARGV[1])
redis.call('HSET', META, 'summary', ARGV[1])
redis.call('HDEL', META, 'stalled')
redis.call('HINCRBY', META, 'revision', 1)

local versions = redis.call('HKEYS', SUMMARIES)
table.sort(versions, function(a, b) return tonumber(a) < tonumber(b) end)
for i = 1, #versions - tonumber(ARGV[4]) do redis.call('HDEL', SUMMARIES, versions[i]) end
-- A key that was created just now has no time to live yet.
if left > 0 then redis.call('PEXPIRE', SUMMARIES, left) end
return 1
