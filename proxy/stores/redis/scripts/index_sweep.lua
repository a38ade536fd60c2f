-- Remove some of what is left of an index that is gone.  Lua, because a new one may begin at any
-- moment, under the same keys.
--
-- KEYS: the index's, then those to remove.  ARGV: the terms among them, as the vocabulary ends.
-- Returns 1, or 0 where there is an index.  Where the vocabulary ends otherwise nothing is done:
-- somebody else has been faster.

if is_there() then return 0 end
local length, size = redis.call('STRLEN', VOCABULARY), #ARGV[1]
if size > 0 and redis.call('GETRANGE', VOCABULARY, -size, -1) ~= ARGV[1] then return 1 end
-- Before the vocabulary is written anew: see mark.lua.
for i = PARTS + 1, #KEYS do redis.call('UNLINK', KEYS[i]) end
if length == size then
  redis.call('UNLINK', VOCABULARY)
elseif size > 0 then
  local left = redis.call('PTTL', VOCABULARY)
  redis.call('SET', VOCABULARY, redis.call('GETRANGE', VOCABULARY, 0, length - size - 1))
  if left > 0 then redis.call('PEXPIRE', VOCABULARY, left) end
end
return 1
