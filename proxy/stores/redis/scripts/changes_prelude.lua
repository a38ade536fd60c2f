-- What it means that messages change.  Put in front of the scripts that change some, behind
-- summary_prelude.lua.

local changed = {} -- { turn, seq } of each

local function note(turn, seq)
  changed[#changed + 1] = { tonumber(turn), tonumber(seq) }
end

local function switch_off(id, index)
  local tokens, turn, seq = message_at(id, index)
  if tokens and supersede(tokens, seq) then note(turn, seq) end
end

local function switch_on(id, index)
  local tokens, turn, seq = message_at(id, index)
  if tokens and activate(tokens, turn, seq) then note(turn, seq) end
end

local function note_changes()
  if #changed == 0 then return end
  redis.call('HINCRBY', META, 'changes', #changed)
  drop_covering(changed)
end
