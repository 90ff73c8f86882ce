-- dnsjit.core.object and one module per layer: the methods of their structs.
local name, inside = ...
require("dnsjit.core.objects")
return inside.modules[name]
