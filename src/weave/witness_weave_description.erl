-module(witness_weave_description).
-moduledoc """
The chunks of object code that describe a module: debug information, documentation, and Elixir's data for checking calls.

Woven object code has the chunks of the original. So tools that read them (`code:which/1`, `m:xref`, `m:cover`, `code:get_doc/1`)
find the same as without weaving, and the module can be woven again. The digest of a module (`code:module_md5/1`) covers none of it.
""".

-export([keep/2]).

-doc "The woven object code with the description of the original.".
-spec keep(Original :: binary(), Woven :: binary()) -> binary().
keep(Original, Woven) ->
    {ok, _, Before} = beam_lib:all_chunks(Original),
    {ok, _, After} = beam_lib:all_chunks(Woven),
    {ok, Kept} = beam_lib:build_module([Chunk || Chunk <- After, not describes(Chunk)]
                                       ++ [Chunk || Chunk <- Before, describes(Chunk)]),
    Kept.

describes({Id, _}) -> lists:member(Id, ["Dbgi", "Abst", "Docs", "ExCk"]).
