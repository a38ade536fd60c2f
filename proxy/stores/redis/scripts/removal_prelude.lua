-- How messages are removed.  Put in front of the scripts that do, behind changes_prelude.lua.

local touched, order = {}, {} -- exchanges that have lost or changed messages

local function touch_exchange(id)
  if not touched[id] then
    touched[id] = true
    order[#order + 1] = id
  end
end

local function remove(id, index)
  local tokens, turn, seq = message_at(id, index)
  if not tokens then return end
  supersede(tokens, seq)
  redis.call('HDEL', CARDS, seq)
  redis.call('HDEL', LOG, seq, 'w' .. seq)
  note(turn, seq)
  touch_exchange(id)
end

-- How many messages an exchange has, and whether one of them is a further choice of a reply.
local function look_into(id)
  local first, size = exchange_of(id)
  local messages, choices = 0, false
  for index = 0, size - 1 do
    local stored = redis.call('HGET', CARDS, padded(first + index))
    if stored then
      local card = card_of(stored)
      messages = messages + 1
      choices = choices or (card[7] == 'response' and card[11] > 0) -- origin, choice
    end
  end
  return messages, choices
end

-- The newest exchange that has messages, of those before a place, is the last one then.
local function find_last(below)
  for seq = below - 1, 1, -1 do
    local id, first, _, _, record = exchange_at(seq)
    if first then
      redis.call('HSET', META, 'last', id, 'profile', cjson.decode(record).profile)
      return
    end
  end
  redis.call('HDEL', META, 'last')
end

-- Remove what names exchanges that are gone: idempotency keys.
local function forget_keys(gone)
  local keys = redis.call('ZRANGE', IDEMPOTENCY, 0, -1)
  local fields = {}
  for i, key in ipairs(keys) do fields[i] = 'k' .. key end
  for i, id in ipairs(fetch(EXCHANGES, fields)) do
    if gone[id] then
      redis.call('HDEL', EXCHANGES, fields[i])
      redis.call('ZREM', IDEMPOTENCY, keys[i])
    end
  end
end

-- After all removals: an exchange without messages is gone too, and one without choices has none.
local function settle()
  local last = redis.call('HGET', META, 'last')
  local below, gone = nil, {}
  for _, id in ipairs(order) do
    local messages, choices = look_into(id)
    if messages == 0 then
      gone[id] = true
      if id == last then below = exchange_of(id) end
      redis.call('HDEL', EXCHANGES, 'x' .. id, 'u' .. id)
    end
    redis.call(choices and 'SADD' or 'SREM', CHOICES, id)
  end
  if next(gone) then forget_keys(gone) end
  if below then find_last(below) end
end
