-- Active messages by seq.  Lua, because whose they are and whether they are active must be known
-- before anything is said.
--
-- ARGV: whether the session must be a certain user's (0/1), the user, the stamp of what is known of it
-- ('' where nothing is); then seqs, four bytes each: those of messages that are not known, and of
-- those that are, which are read too where the stamp is another by now, or the newest message that is
-- known, whose seq and id follow, is not there.
-- Returns { stamp, whether what is known is still so (0/1), then entry and body in turns }, or {}.

local meta = redis.call('HMGET', META, 'created', 'changes', 'revised', 'owner')
if not meta[1] or (ARGV[1] == '1' and meta[4] ~= ARGV[2]) then return {} end
local stamp = log_stamp(meta[1], meta[2], meta[3])
local same = stamp == ARGV[3] and is_there(ARGV[6], ARGV[7])
local found = { stamp, same and 1 or 0 }

local function read(numbers)
  local seqs, there, texts = {}, {}, {}
  for at = 1, #numbers, 4 do seqs[#seqs + 1] = padded(struct.unpack('<I4', numbers, at)) end
  for i, card in ipairs(fetch(CARDS, seqs)) do
    local cut = card and string.find(card, ' ', 1, true)
    if card and redis.call('ZSCORE', ACTIVE, seqs[i] .. ' ' .. string.sub(card, 1, cut - 1)) then
      there[#there + 1] = string.sub(card, cut + 1)
      texts[#texts + 1] = seqs[i]
    end
  end
  for i, text in ipairs(fetch(LOG, texts)) do
    if text then
      found[#found + 1] = there[i]
      found[#found + 1] = text
    end
  end
end

if ARGV[4] ~= '' then read(ARGV[4]) end
if not same and ARGV[5] ~= '' then read(ARGV[5]) end
return found
