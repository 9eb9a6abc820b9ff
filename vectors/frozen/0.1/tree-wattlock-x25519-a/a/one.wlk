wattlock/v1
-> X25519 WvpS47VrzPUizlT23rXuyshgiFCQLbpsMVI+PWU/KnE
PYyosnuhz1D6AqdzzVjVmFLnEL2eCXGZBwkHqvbphkg
=> data-key 98O4zw6rJARUG1Jwy7YgNQ
m4NStfZg0cOii1FlILH1+8k8tWL0MzGAYzLmmlUjlHw5JvkYBkKUsQJU5+4CpIwx

=> metadata HpJ9V1kWAUMXVG7RGfAy/Q
flF7j0EQpe6fvve98bwzIHYQrpbqKk4rjXWbGY5hvirxLBxqhg5idDfaS3la9Qvu
qvlBTpw4FMnpHm2rJS8BvfHXdbG4shKECsMKrZmvRmU
--- uiTjLIter+qd6Aef10ePO32ahL9yEgT57sSmyFLMgvQ
eÄ,~BÈ‹&fß[ÌîanÇ²ÕÍºÆïRí¿ÚbQnºx’M€¢}'Ïr1—ùyÀ" ³~êfˆ½pÛŸjT]¤LE