-- Change a session by hand.  Lua, because it must be all of it or nothing, and only what is still as
-- the one who changes it has seen it.
--
-- ARGV: a name for this revision, number of edited, removed, superseded and activated messages,
-- whether details are given that were (0/1) and that are (0/1), and the size of the log (0/1); then, where given, both details (title,
-- metadata, ttl, system, system_tokens; title and system as '=' and text, '' for none) and that size
-- (the last seq, messages, tokens); then the edits (see edit_prelude.lua); then the places of the
-- others.
-- Returns { 1, owner, last active, ttl }, or {} where something is not as it was and nothing is done.
--
-- Sent once more because the reply was lost, it is known by its name while no other has followed.

local edited, removed = tonumber(ARGV[2]), tonumber(ARGV[3])
local gone, back = tonumber(ARGV[4]), tonumber(ARGV[5])
local at = 9

local meta = redis.call('HMGET', META, 'next', 'owner', 'active_at', 'ttl', 'title', 'metadata',
  'system', 'system_tokens', 'revised', 'messages', 'tokens')
if not meta[1] then return {} end
local ttl = tonumber(meta[4])
local function done()
  return { 1, meta[2] or '', meta[3], string.format('%d', ttl) }
end
if meta[9] == ARGV[1] then
  -- Changes nothing, but is a write: WAIT on this connection then covers the first attempt too.
  redis.call('HINCRBY', META, 'revision', 0)
  return done()
end

-- Look.
local DETAILS, SIZE = 5, 3
local function optional(text)
  return text and '=' .. text or ''
end
if ARGV[6] == '1' then
  local same = optional(meta[5]) == ARGV[at] and (meta[6] or '{}') == ARGV[at + 1]
    and ttl == tonumber(ARGV[at + 2]) and optional(meta[7]) == ARGV[at + 3]
    and tonumber(meta[8] or 0) == tonumber(ARGV[at + 4])
  if not same then return {} end
  at = at + DETAILS
end
local details = at
if ARGV[7] == '1' then at = at + DETAILS end
if ARGV[8] == '1' then
  local same = tonumber(meta[1]) - 1 == tonumber(ARGV[at])
    and tonumber(meta[10] or 0) == tonumber(ARGV[at + 1])
    and tonumber(meta[11] or 0) == tonumber(ARGV[at + 2])
  if not same then return {} end
  at = at + SIZE
end
for i = 0, edited - 1 do
  if not is_as_it_was(at + i * EDIT_SIZE) then return {} end
end

-- Edit.  A full server refuses nothing behind a first removal: it is asked before, but where that is
-- what is wanted.
local left = redis.call('PTTL', META)
if removed == 0 then redis.call('HINCRBY', META, 'revision', 0) end
for _ = 1, edited do
  edit(at)
  touch_exchange(ARGV[at])
  at = at + EDIT_SIZE
end

-- Remove, supersede, activate.
local function each(times, change)
  for _ = 1, times do
    change(ARGV[at], ARGV[at + 1])
    at = at + 2
  end
end
each(removed, remove)
each(gone, switch_off)
each(back, switch_on)
if #changed > edited then
  for _, field in ipairs(redis.call('HKEYS', META)) do
    if string.sub(field, 1, 7) == 'window:' then redis.call('HDEL', META, field) end
  end
end
note_changes()
settle()

-- Describe anew.
local function set(field, value)
  if value == '' then
    redis.call('HDEL', META, field)
  else
    redis.call('HSET', META, field, string.sub(value, 2))
  end
end
redis.call('HSET', META, 'revised', ARGV[1])
redis.call('HINCRBY', META, 'revision', 1)
live_on(left)
if ARGV[7] == '1' then
  set('title', ARGV[details])
  set('system', ARGV[details + 3])
  redis.call('HSET', META, 'metadata', ARGV[details + 1], 'system_tokens', ARGV[details + 4])
  if tonumber(ARGV[details + 2]) ~= ttl then
    ttl = tonumber(ARGV[details + 2])
    redis.call('HSET', META, 'ttl', ttl)
    expire(ttl)
  end
end
return done()
