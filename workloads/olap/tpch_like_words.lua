--- Words of the tpch_like workload: names that its queries look for, and the lists from which its texts are made.

local function words(text)
  local list = {}
  for word in text:gmatch("%S+") do list[#list + 1] = word end
  return list
end

local all = {}

all.regions = { "AFRICA", "AMERICA", "ASIA", "EUROPE", "MIDDLE EAST" }

-- Name, and its region, counted from 1.
all.nations = {
  { "ALGERIA", 1 }, { "ARGENTINA", 2 }, { "BRAZIL", 2 }, { "CANADA", 2 }, { "EGYPT", 5 }, { "ETHIOPIA", 1 },
  { "FRANCE", 4 }, { "GERMANY", 4 }, { "INDIA", 3 }, { "INDONESIA", 3 }, { "IRAN", 5 }, { "IRAQ", 5 }, { "JAPAN", 3 },
  { "JORDAN", 5 }, { "KENYA", 1 }, { "MOROCCO", 1 }, { "MOZAMBIQUE", 1 }, { "PERU", 2 }, { "CHINA", 3 },
  { "ROMANIA", 4 }, { "SAUDI ARABIA", 5 }, { "VIETNAM", 3 }, { "RUSSIA", 4 }, { "UNITED KINGDOM", 4 },
  { "UNITED STATES", 2 },
}

all.colors = words [[almond antique aquamarine azure beige bisque black blanched blue blush brown burlywood burnished
chartreuse chiffon chocolate coral cornflower cornsilk cream cyan dark deep dim dodger drab firebrick floral forest
frosted gainsboro ghost goldenrod green grey honeydew hot indian ivory khaki lace lavender lawn lemon light lime linen
magenta maroon medium metallic midnight mint misty moccasin navajo navy olive orange orchid pale papaya peach peru pink
plum powder puff purple red rose rosy royal saddle salmon sandy seashell sienna sky slate smoke snow spring steel tan
thistle tomato turquoise violet wheat white yellow]]

-- A type is one of each.
all.types = {
  words "STANDARD SMALL MEDIUM LARGE ECONOMY PROMO", words "ANODIZED BURNISHED PLATED POLISHED BRUSHED",
  words "TIN NICKEL BRASS STEEL COPPER",
}
all.containers = { words "SM LG MED JUMBO WRAP", words "CASE BOX BAG JAR PKG PACK CAN DRUM" }
all.segments = words "AUTOMOBILE BUILDING FURNITURE MACHINERY HOUSEHOLD"
all.priorities = { "1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW" }
all.instructions = { "DELIVER IN PERSON", "COLLECT COD", "NONE", "TAKE BACK RETURN" }
all.modes = { "REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB" }

-- The words between which Q13 looks for anything.
all.before, all.after = words "special pending unusual express", words "packages requests accounts deposits"

local ADJECTIVES = words "special pending unusual express regular final ironic silent careful quick even bold idle"
local NOUNS = words [[packages requests accounts deposits invoices ledgers shipments contracts drafts parcels offers
samples returns tariffs]]
local VERBS = words "sleep wake run move arrive wait follow rest grow change travel settle"
local ADVERBS = words "slowly quickly carefully silently daily always rarely again early"
local POOL_LENGTH = 100000

--- A long text, the same in every session: comments are parts of it.
function all.pool()
  local parts, length, state = {}, 0, 42
  local function any(list)
    state = state * 16807 % 2147483647
    return list[state % #list + 1]
  end
  while length < POOL_LENGTH do
    local sentence = ("%s %s %s %s the %s %s. "):format(any(ADJECTIVES), any(NOUNS), any(VERBS), any(ADVERBS),
      any(ADJECTIVES), any(NOUNS))
    parts[#parts + 1] = sentence
    length = length + #sentence
  end
  return table.concat(parts)
end

return all
