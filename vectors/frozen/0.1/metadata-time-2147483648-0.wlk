wattlock/v1
-> X25519 EiK2czgf1jQHHI4p4nMjp3MqJHZ3JS1nfMdFrgmrzDE
HH5ARnonmn+vTfUc9uYDblQOP0HJRzDWonv8EO4zM2Y
=> data-key zT7jRbInDaL1r6MFEOdqTA
YwnH9BlY+fJAlqs9l9CIgUneKGAZHTf901d1KMwoQHjNx+tXbEiZfp/weK3e2mcH

=> metadata 3ovepctT+4R1uNPachv/VQ
PFjI/1qPEmO6wWU8qtUA7JC+9I3ye2oPB5IWSqOuyK0c39KnmNIMkgu3bn/HW1gb
/z64adUmk5t2jPHafy8uIk4QeC8g7soHTBmIPdIE9cM
--- lsF5konUm/p1uE/3zMGh1uk+9V41LJqbhSYnoOvX0C4
Ú>"‚ï£Ô”uà·¢vIvÑÔjiaŠ)qw‰Ô—@pŠQð|XV‹šÜeÁèxí5¤ZûzF6ä€¡äGxwèŒM8ðhÝC1±öó®{ã\ÞÒ™<Soo=Œ®sáëyÄx°`	ôQr÷¥ßO(%UY¯Þ+3Â4ˆâ_ÒrW».~ÔAÛ@7$7¼;×T5.ôê,µw
øŽ-&c†ÖƒR