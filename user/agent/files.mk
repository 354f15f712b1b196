# SPDX-License-Identifier: GPL-2.0-or-later
# The files of the agent: one that stands here in no list is not in it. Rooms from the bottom up.
AGENT_lib := array call_filter cgroup_dir cgroup_memory courtesy crc32c elf elf_symbols escape file_at flush hash hash_index helper_process human json log \
	maps parse privileges proc proc_memory random same_memory sha256 thread unnamed_file wrap yama
AGENT_target := alloc_spec allocator allocator_kind image mapped_file module program_link target
AGENT_names := data_ref
AGENT_probe := ifunc note_args notes probe probe_check probe_place
AGENT_unwind := cfi cfi_exidx cfi_frame cfi_load cfi_pack cfi_parse cfi_program cfi_section
AGENT_heap := block_table budget cover_map heap heap_check heap_fold heap_ignore heap_order heap_pool \
	heap_read heap_span misuse region_table row_table stacks thread_table timeline trend
AGENT_source := backlog caps changed_code launch launch_attend launch_call launch_child launch_leave \
	launch_threads limits placing placing_notes record source_open source_ptrace source_ptrace_place source_ptrace_watch \
	tuning
AGENT_scan := code_file leaks leaks_link leaks_marks page_scan scan_blocks scan_books scan_chunks scan_edges \
	scan_exit scan_filter scan_glib scan_judge scan_leaf scan_look scan_meaning scan_parts scan_read scan_reason \
	scan_regions scan_result scan_roots scan_spread scan_stdio scan_threads scan_why \
	snapshot snapshot_memory snapshot_price snapshot_resident snapshot_stop snapshot_threads
AGENT_stream := kept out_name record_file recorder span stream_coder stream_guess stream_layout stream_state stream_target \
	stream_write
AGENT_report := caller_id format intern json_tables output report report_json report_text report_text_details \
	report_text_leaks report_text_misuse report_text_stack report_verdict
AGENT_session := busy_signals control session session_children session_chosen session_dropped session_ending \
	session_fill session_forward session_heap session_lent session_live session_losses session_marks \
	session_memory session_notes session_record session_report \
	session_scan session_span session_threads session_tune session_unwatched
AGENT_remote := net_addr net_connect net_socket serve serve_books serve_link wire \
	wire_auth wire_chain wire_command wire_kind wire_scan
AGENT_cli := attach cmd_attach cmd_run cmd_serve commands main options options_help options_parse options_rooms run_as \
	tracees tracing
AGENT_agent := no_bpf no_libraries no_list no_metrics no_mistakes no_names no_progress no_suppress \
	$(if $(findstring musl,$(AGENT_CC)),small_getopt small_libc small_printf small_rights small_users)
AGENT_fallback := cfi_table code_memory copied_code guardian guardian_main inflight places program ring tracer \
	tracer_call tracer_child tracer_cpu tracer_event tracer_image tracer_note tracer_place \
	tracer_stack tracer_state tracer_stop trial unwind
# Of arch/ all that knows code of another CPU only by its number goes, and what knows this one stays.
AGENT_arch := $(notdir $(basename $(filter-out arch/insn_x86%.c,$(wildcard arch/*.c))))
AGENT_arch := $(filter-out $(filter-out %_$(AGENT_CPU) %_plain,$(filter regs_% tracee_% inject_%,$(AGENT_arch))),$(AGENT_arch))

AGENT_ROOMS := lib target names probe unwind heap source scan stream report session remote cli agent
AGENT_SRCS := $(foreach r,$(AGENT_ROOMS),$(AGENT_$(r):%=user/$(r)/%.c)) $(AGENT_fallback:%=fallback/%.c) $(AGENT_arch:%=arch/%.c)
# SERVE_ONLY=1: the books are the client's, and so are reports. IS_SERVE_ONLY takes more away in the files that stay.
NOT_TO_SERVE := user/report/%.c user/lib/json.c $(addprefix user/cli/,attach.c cmd_attach.c cmd_run.c run_as.c tracees.c tracing.c)
AGENT_SRCS := $(filter-out $(if $(SERVE_ONLY),$(NOT_TO_SERVE)),$(AGENT_SRCS))
