-- The queue of work.  Put in front of the scripts that write it.  It is two keys:
--   due     zset: piece, score when it is due; for one that is held, when its lease runs out
--   pieces  hash: piece -> asked SP attempts SP lease SP profile; lease - while nobody holds it
-- A piece is called kind:tenant:session, all percent-encoded.

-- asked, attempts, lease, profile of a piece, or nil
local function piece_of(pieces, name)
  local found = redis.call('HGET', pieces, name)
  if not found then return nil end
  local asked, attempts, lease, profile = string.match(found, '^(%d+) (%d+) (%S+) (.*)$')
  return tonumber(asked), tonumber(attempts), lease, profile
end

local function keep(pieces, name, asked, attempts, lease, profile)
  local counts = string.format('%d %d ', asked, attempts)
  redis.call('HSET', pieces, name, counts .. lease .. ' ' .. profile)
end

-- Ask for the piece that ARGV[at] describes: name, profile, at, after, later.  One that is not among
-- the due is, whatever is kept of it: a server that evicts keys may have lost when it was.
local DUE_SIZE = 5
local function enqueue(due, pieces, at)
  local name, profile = ARGV[at], ARGV[at + 1]
  local asked, attempts, lease = piece_of(pieces, name)
  asked = (asked or 0) + 1
  local waits = not lease or (lease == '-' and attempts == 0)
  if waits or not redis.call('ZSCORE', due, name) then
    local often = asked >= tonumber(ARGV[at + 3])
    redis.call('ZADD', due, often and ARGV[at + 2] or ARGV[at + 4], name)
  end
  keep(pieces, name, asked, attempts or 0, lease or '-', profile)
end

-- The piece ARGV[1] (as piece_of) if the claim ARGV[2] still holds it, or nil.
local function held(pieces)
  local asked, attempts, lease, profile = piece_of(pieces, ARGV[1])
  if not lease or lease == '-' or lease ~= ARGV[2] then return nil end
  return asked, attempts, lease, profile
end
