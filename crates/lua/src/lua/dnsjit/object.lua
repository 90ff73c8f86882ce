-- dnsjit.core.object and one module a layer: what their structs can do.
local name, inside = ...
require("dnsjit.core.objects")
return inside.modules[name]
