-- Add usage and further choices to a recorded exchange, and what its answer says behind its finish.
-- Lua, because each must be added once, and only where the exchange is in history.
--
-- ARGV: exchange, usage ('' for none), whether its answer is edited (0/1), then that edit (see
-- edit_prelude.lua), then for each draft its index and the draft (see put).
-- Returns the seq of what was edited, 0 where nothing was.

local id, usage = ARGV[1], ARGV[2]
local first, size = exchange_of(id)
if not first then return 0 end

local left = redis.call('PTTL', META)
-- Before an edit removes anything: a full server refuses nothing behind that.
redis.call('HINCRBY', META, 'revision', 1)
if usage ~= '' then redis.call('HSETNX', EXCHANGES, 'u' .. id, usage) end
local at, edited = 4, 0
if ARGV[3] == '1' then
  if is_as_it_was(at) then edited = edit(at) end
  at = at + EDIT_SIZE
end
note_changes()
for at = at, #ARGV, DRAFT_SIZE + 1 do
  local index = tonumber(ARGV[at])
  if index < size and redis.call('HEXISTS', CARDS, padded(first + index)) == 0 then
    put(id, first + index, at + 1)
  end
end
live_on(left)
return edited
