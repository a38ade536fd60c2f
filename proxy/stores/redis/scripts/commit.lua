-- Put an exchange into history.  Lua, because the decisions (seen before? whose? outrun?) and the
-- writes must be one: a client could not do them in a transaction without reading first.
--
-- The keys behind the session's are the marks of what was erased: the session's, then those of
-- people; then the lists that follow (see touch.lua), then, with work to ask for, the queue (see
-- work_prelude.lua).  In a cluster all but the session's mark live elsewhere: the marks of people are
-- looked at before, lists and queue are written afterwards.
-- ARGV: id, user, idempotency key, started_at, created_at, record, reserved, system, system_tokens,
-- the profile, the window's start (exchange, index; '' for none), the window's profile, anew, ttl
-- ('' leaves it), the time since when keys count, the session's id, number of drafts, number of
-- superseded, number of activated, number of pieces of work, number of keys that are marks, a mark
-- that was looked at before ('' for none), the person whose mark is among them ('' for none), whether
-- this is but a step ahead of the commit (0/1: it only supersedes and activates), the count of changes
-- ('' for none) and the newest exchange that it has seen, whether it parts from what others say (0/1),
-- and what the record of an exchange that was broken off has in it; then the drafts, then places
-- (exchange, index) of the superseded and the activated, then the pieces of work.
-- Returns { outcome, owner, last active, ttl }; the outcome "owned" says that nothing was done because
-- the owner's mark must be looked at too.

local id, user, key, started, created = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local record, reserved = ARGV[6], tonumber(ARGV[7])
local drafts, gone, back = tonumber(ARGV[18]), tonumber(ARGV[19]), tonumber(ARGV[20])
local oldest, work = tonumber(ARGV[16]), tonumber(ARGV[21])
local marks, mark, person, ahead = tonumber(ARGV[22]), ARGV[23], ARGV[24], ARGV[25] == '1'
local seen_changes, seen_last, parts = ARGV[26], ARGV[27], ARGV[28] == '1'
local incomplete, HEAD = ARGV[29], 30

local meta = redis.call('HMGET', META, 'next', 'owner', 'last', 'ttl', 'active_at', 'changes')
local owner, last, old_ttl = meta[2], meta[3], tonumber(meta[4] or 0)
local function refused(outcome)
  -- Changes nothing, but is a write: WAIT on this connection then covers the first attempt too.
  if outcome == 'duplicate' then redis.call('HINCRBY', META, 'revision', 0) end
  return { outcome, owner or '', meta[5] or created, string.format('%d', old_ttl) }
end

local function attempt()
  if key == '' or not meta[1] then return nil end
  local since = redis.call('ZSCORE', IDEMPOTENCY, key)
  local found = since and tonumber(since) > oldest and redis.call('HGET', EXCHANGES, 'k' .. key)
  return found and redis.call('HEXISTS', EXCHANGES, 'x' .. found) == 1 and found or nil
end

local function broken_off(record)
  return record and string.find(record, incomplete, 1, true)
end

-- Has the session changed in a way that matters to this since it was seen?
local function outdated()
  if not meta[1] or seen_changes == '' then return false end
  if seen_changes ~= (meta[6] or '0') then return true end
  if seen_last == (last or '') then return false end
  if parts or broken_off(record) then return true end
  return last and broken_off(select(4, exchange_of(last)))
end

-- Refuse.  Where there is no session, what is left of its keys tells nothing.
if meta[1] and redis.call('HEXISTS', EXCHANGES, 'x' .. id) == 1 then return refused('duplicate') end
if user ~= '' and owner and owner ~= user then return refused('foreign') end
local earlier = attempt()
if earlier then
  local _, _, its_start = exchange_of(earlier)
  if earlier ~= last then return refused('stale') end
  if its_start > tonumber(started) then return refused('outrun') end
end
if outdated() then return refused('outdated') end
if owner and person ~= owner then return refused('owned') end
if forbids(mark, started) or any_forbids(SESSION_KEYS + 1, SESSION_KEYS + marks, started) then
  return refused('erased') -- what this belongs to, since it began
end

-- A full server refuses nothing behind a first removal: so it is asked before there is one.
redis.call('SETRANGE', KEYS[SESSION_KEYS + 1], 0, '') -- changes nothing
-- Keys of one session expire together, but not in the same instant on every server.
if not meta[1] then redis.call('UNLINK', unpack(KEYS, 1, SESSION_KEYS)) end

-- Supersede, activate.
if earlier then
  local _, size = exchange_of(earlier)
  for index = 0, size - 1 do switch_off(earlier, index) end
end
local at = HEAD + drafts * DRAFT_SIZE
for i = 1, gone do
  switch_off(ARGV[at], ARGV[at + 1])
  at = at + 2
end
for i = 1, back do
  switch_on(ARGV[at], ARGV[at + 1])
  at = at + 2
end
note_changes()
if ahead then
  if meta[1] then redis.call('HINCRBY', META, 'revision', 1) end
  return { 'recorded', owner or '', meta[5] or created, string.format('%d', old_ttl) }
end

-- Append.  Drafts find the turn of those before them.  The exchange last: what a server refuses half
-- way, because a key is of another type, say, is no duplicate when it comes again.
local first, size = tonumber(meta[1] or 1), drafts + reserved
spans[id] = { first, size }
if drafts > 0 then put(id, first, HEAD, drafts) end
redis.call('HSET', EXCHANGES, 'x' .. id, first .. ' ' .. size .. ' ' .. started .. ' ' .. record)

-- Remember.
local active_at = created
if meta[5] and tonumber(meta[5]) > tonumber(created) then active_at = meta[5] end
local ttl = meta[1] and old_ttl or tonumber(ARGV[15])
redis.call('HSET', META, 'next', string.format('%d', first + size), 'last', id, 'profile', ARGV[10],
  'active_at', active_at, 'ttl', ttl)
redis.call('HINCRBY', META, 'revision', 1)
if not meta[1] then redis.call('HSET', META, 'created', created); count(0, 0) end
if not owner and user ~= '' then
  owner = user
  redis.call('HSET', META, 'owner', user)
end
if ARGV[8] ~= '' then redis.call('HSET', META, 'system', ARGV[8], 'system_tokens', ARGV[9]) end

if ARGV[11] ~= '' then
  local tokens, turn, seq = message_at(ARGV[11], ARGV[12])
  local field = 'window:' .. ARGV[13]
  local turn_then, seq_then = string.match(redis.call('HGET', META, field) or '', '^(%d+) (%d+)$')
  if tokens then
    local t, s, t0, s0 = tonumber(turn), tonumber(seq), tonumber(turn_then), tonumber(seq_then)
    if ARGV[14] == '1' or not t0 or t > t0 or (t == t0 and s > s0) then
      redis.call('HSET', META, field, turn .. ' ' .. string.format('%d', s))
    end
  end
end

if key ~= '' then
  redis.call('HSET', EXCHANGES, 'k' .. key, id)
  redis.call('ZADD', IDEMPOTENCY, created, key)
  -- A day longer than they count: a commit that waited in a spool still finds what it would have.
  local forgotten = oldest - 86400
  local dead = redis.call('ZRANGEBYSCORE', IDEMPOTENCY, '-inf', forgotten, 'LIMIT', 0, 20)
  for _, name in ipairs(dead) do
    redis.call('HDEL', EXCHANGES, 'k' .. name)
    redis.call('ZREM', IDEMPOTENCY, name)
  end
end

-- One that is being put back, and lives for seconds, lives on with what was said in it.
if ttl > 0 or redis.call('PTTL', META) > 0 then expire(ttl) end
local lists = #KEYS
if work > 0 then
  lists = #KEYS - 2
  for i = 0, work - 1 do enqueue(KEYS[#KEYS - 1], KEYS[#KEYS], at + i * DUE_SIZE) end
end
for i = SESSION_KEYS + marks + 1, lists, 2 do touch(KEYS[i], KEYS[i + 1], ARGV[17], active_at, ttl) end
return { 'recorded', owner or '', active_at, string.format('%d', ttl) }
