wattlock/v1
-> X25519 WvpS47VrzPUizlT23rXuyshgiFCQLbpsMVI+PWU/KnE
PYyosnuhz1D6AqdzzVjVmFLnEL2eCXGZBwkHqvbphkg
=> data-key GY2UUFasxVJpWLbvXKNYbQ
2wLme6hswOBXPK66FS8YW2650voNcxupNVZU+V+LHrVGuFUt7XIWQfv8qNaGypvq

=> metadata 5RhiWdu/QZgKq1biIVW3sw
tF9JCzpw1JvtvzAZgCVLnVm0mNg6Ewfv4gj3UZIDbyBDKxEO72J4+RHQWEF69OK7
yRFIctq4J0V+nvELOt25AcuLUYOB0tN3rP+yQ8zdVNQ
--- jvPEmDioN/TAjVysof7e2KHblu7xYKKRJ/qt+TQQD5E
?<„Ââ(×;qMááTPPjTÖRÀ¾“–í"¾ç¨j¢ž0fq5õ´Ÿœe/ó$ù/^ÚÅ´j0‡Å%Ð`…#}É¾–²À¶åý_s‹[þñcå½Þ5-2ŸúåâT	¯“öýÙ‚{XgÔàp^dãÍáÑ˜æf4‘ÇHð†œ¥vÇÂE‰^×àÌ×[û¸âÇXS±#1ÞÜÙžD·>¿:"©-Ý¤ŸÅ]Ø‰