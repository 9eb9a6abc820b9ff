wattlock/v1
-> X25519 XEYQCQ1z7A4PH8gVbSfdoDA9r/gVeS6sbU545RlfNHo
ss7CuF8DBgmoFynklF4cW2O0sHPU+7B1cU646xs0r9E
=> data-key iPlNIsFWxruXeg+WMGZNbA
tI71QRLBcAhrvaWZvZ7kockqRZMJ5Ami+oOcjBDMe32EVZJmZ0f3I8W8L7pnqhrH

=> metadata H2uwQ2MrIpgVP+l3IWf3qw
hM2y8lvummyrJDE2mFykG8x5ZG2+esDkovI8bxlFq8ZVrUp1G7v9IguHRWeyyNDa
kLPwBjxIFI09R1Bgk5HGB6r7GjRqKbtjvbinen4WJ6I
--- dudtQ5fx9FFvuzeS5ATAOXB/en8X/t8IE1tLHva6yn0
]‰`¹£GðÒUH~¹{Œ€G`«`3¨î}û¾Á7è0ý ðSÌœÖV­·Of€®>ƒm3“	=cœŽçBÄÆ¼g«,áy6õ5¿këFÆÙÕ(ºf‡¯œ•õà—ø`!ïšþ~E£‹eÑNuhÐ½™nP¸5Ü¾™¿=Ÿ*[)Æ¸<9_/ê‰-›ç4ìÎ!¾F‡¤ÒUµœ{	ÇŽ¥q›5Ú-%>w=á5nû