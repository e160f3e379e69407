-module(witness_record_unwoven).
-moduledoc """
Where modules come from that were loaded unwoven while a program was recorded: this determines what to do about each
(`m:witness_log_recording_refusal`). Called in the recorded VM when the recording has ended.
""".

-export([why/1]).

-doc "Why each of these modules is not woven. `MD5`: the digest of its object code, if it is known.".
-spec why([{module(), MD5 :: binary() | unknown}]) -> [{module(), witness_log_recording_refusal:why()}].
why(Modules) -> [{Module, of_module(Module, MD5)} || {Module, MD5} <- Modules].

of_module(Module, MD5) ->
    case code:get_object_code(Module) of
        {Module, Object, File} ->
            case MD5 =:= unknown orelse code:module_md5(Object) =:= MD5 of
                true -> of_file(Object, filename:absname(File));
                false -> memory
            end;
        error -> memory
    end.

of_file(Object, File) ->
    Dir = filename:dirname(File),
    case {has_debug_info(Object), app(Dir)} of
        {false, App} -> {no_debug_info, File, App =/= none orelse lists:member(Dir, named())};
        {true, none} -> folder(Dir, File);
        {true, App} -> {otp, App}
    end.

%% The library of OTP that has this folder, `APP-VERSION/ebin'.
app(Ebin) ->
    Dir = filename:dirname(Ebin),
    case filename:dirname(Dir) =:= code:lib_dir() of
        true -> list_to_atom(hd(string:split(filename:basename(Dir), "-")));
        false -> none
    end.

%% In the folders that were named, all modules are woven that can be.
folder(Dir, File) ->
    case lists:member(Dir, named()) of
        true -> {not_woven, File};
        false -> {folder, Dir}
    end.

named() -> [filename:absname(Dir) || {pa, Dirs} <- init:get_arguments(), Dir <- Dirs].

has_debug_info(Object) ->
    case beam_lib:chunks(Object, [debug_info]) of
        {ok, {_, [{debug_info, {debug_info_v1, erl_abstract_code, {none, _}}}]}} -> false;
        {ok, {_, [{debug_info, {debug_info_v1, _, none}}]}} -> false;
        {ok, {_, [{debug_info, {debug_info_v1, _, _}}]}} -> true;
        _ -> false
    end.
