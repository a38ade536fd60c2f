-- Active messages by seq.  Lua, because whose they are and whether they are active must be known
-- before anything is said.
--
-- ARGV: whether the session must be a certain user's (0/1), the user, then the seqs.
-- Returns entry and body in turns.

if ARGV[1] == '1' and redis.call('HGET', META, 'owner') ~= ARGV[2] then return {} end
local found = {}
for i = 3, #ARGV do
  local seq = padded(ARGV[i])
  local card = redis.call('HGET', CARDS, seq)
  if card then
    local tokens, entry = string.match(card, '^(%d+) (.*)$')
    if redis.call('ZSCORE', ACTIVE, seq .. ' ' .. tokens) then
      found[#found + 1] = entry
      found[#found + 1] = redis.call('HGET', LOG, seq)
    end
  end
end
return found
