/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The page of the HTML report, inside heaptap itself: markup, style, and the script in the order of its parts. */
	.section .rodata
	.global html_page_start, html_page_end
html_page_start:
	.incbin "user/report/html/page.html"
html_page_end:
	.byte 0
	.global html_style_start, html_style_end
html_style_start:
	.incbin "user/report/html/page.css"
html_style_end:
	.byte 0
	.global html_script_start, html_script_end
html_script_start:
	.incbin "user/report/html/data.js"
	.incbin "user/report/html/format.js"
	.incbin "user/report/html/tree.js"
	.incbin "user/report/html/flame.js"
	.incbin "user/report/html/charts.js"
	.incbin "user/report/html/part.js"
	.incbin "user/report/html/holders.js"
	.incbin "user/report/html/timeline.js"
	.incbin "user/report/html/diff.js"
	.incbin "user/report/html/series.js"
	.incbin "user/report/html/system.js"
	.incbin "user/report/html/table.js"
	.incbin "user/report/html/head.js"
	.incbin "user/report/html/page.js"
html_script_end:
	.byte 0
	.section .note.GNU-stack,"",@progbits
