--- A position in a text for display: its line, and a mark below the character.
local core = ...

-- Columns shown of a line, and how many of them must remain to the right of the mark.
local SHOWN, RIGHT = 60, 10

--- The line of `text` that contains character `position` (from 1), with its number, and a mark below it: two lines. nil
--- without a position.
function core.marked(text, position)
  if not position or position < 1 then return nil end
  local characters, number, first, last = {}, 1, 1, nil
  for character in text:gmatch("[%z\1-\127\194-\244][\128-\191]*") do
    local n = #characters + 1
    characters[n] = character == "\t" and " " or character
    if character == "\n" then
      if n < position then
        number, first = number + 1, n + 1
      else
        last = last or n - 1
      end
    end
  end
  last = last or #characters
  local before, after = "", ""
  if last - first + 1 > SHOWN then
    if first + SHOWN >= position + RIGHT then
      last, after = first + SHOWN - 1, "..."
    else
      if position + RIGHT <= last then last, after = position + RIGHT - 1, "..." end
      if last - first + 1 > SHOWN then first, before = last - SHOWN + 1, "..." end
    end
  end
  local head = "LINE " .. number .. ": " .. before
  local line = head .. table.concat(characters, "", first, last) .. after
  return line .. "\n" .. (" "):rep(#head + position - first) .. "^"
end
